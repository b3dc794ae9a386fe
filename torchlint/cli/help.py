"""``--help`` with the options in groups, in the order in which they are wanted."""

from __future__ import annotations

from types import MappingProxyType

import click

_LARGEST_COLUMN = 34

GROUPS = MappingProxyType(
    {
        "Rules": "select extend_select ignore per_file_ignores target_torch num_workers",
        "Files": "exclude extend_exclude force_exclude lint_tests stdin_filename config isolated",
        "Findings that count": "baseline no_baseline write_baseline since add_ignore fail_level max_findings",
        "Fixes": "fixing diff interactive apply unsafe_fixes fixable unfixable extend_safe_fixes extend_unsafe_fixes "
        "exit_non_zero_on_fix",
        "Report": "output_format output_file statistics show_files show_settings color quiet verbose exit_zero",
        "Run": "watch jobs file_timeout no_cache profile_rules",
    }
)
"""Heading to the names of the parameters below it; any other option comes last."""

_OTHERS = "Other"


class GroupedCommand(click.Command):
    """A command whose help has a section for each group of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        headings = {name: heading for heading, names in GROUPS.items() for name in names.split()}
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*GROUPS, _OTHERS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections[headings.get(parameter.name or "", _OTHERS)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=_LARGEST_COLUMN)
