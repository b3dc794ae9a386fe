"use strict";
(() => {
  const STEP = 50;
  const FEW = 40;
  const KEYWORDS = new Set(("False None True and as assert async await break class continue def del elif else except finally for "
    + "from global if import in is lambda nonlocal not or pass raise return try while with yield").split(" "));
  const TOKEN = /(#.*)|([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
  const FIXES = {safe: "safe fix", unsafe: "unsafe fix", display: "suggestion", none: "none"};
  const THEMES = {system: "as the system", light: "light", dark: "dark"};

  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const controls = {q: byId("query"), rule: byId("rule"), fix: byId("fix"), severity: byId("severity"), group: byId("group")};
  const words = new Map();

  // Everything that comes from the project is set as text, never as markup.
  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  const safety = (finding) => (finding.fix ? finding.fix.safety : "none");
  const path = (finding) => data.files[finding.file];
  const units = (text, points) => Array.from(text).slice(0, points).join("").length;

  // ---- code -------------------------------------------------------------------------------------------------------

  function painted(text, from, to) {
    const made = document.createDocumentFragment();
    const marked = element("mark");
    const put = (start, end, className) => {
      for (const [a, b, inside] of [[start, Math.min(end, from), false], [Math.max(start, from), Math.min(end, to), true],
        [Math.max(start, to, from), end, false]]) {
        if (a >= b) continue;
        const piece = text.slice(a, b);
        if (inside && !marked.parentNode) made.append(marked);
        (inside ? marked : made).append(className ? element("span", className, piece) : piece);
      }
    };
    let last = 0;
    for (const match of text.matchAll(TOKEN)) {
      const className = match[1] ? "comment" : match[2] ? "string" : match[3] ? "number-literal" : KEYWORDS.has(match[4]) ? "keyword" : "";
      put(last, match.index, "");
      put(match.index, match.index + match[0].length, className);
      last = match.index + match[0].length;
    }
    put(last, text.length, "");
    return made;
  }

  function line(row, className, content) {
    const made = element("span", "line" + (className ? " " + className : ""), content, "\n");
    made.dataset.row = row;
    return made;
  }

  function excerpt(finding) {
    const [[firstRow, firstColumn], [lastRow, lastColumn]] = finding.range;
    const shown = finding.excerpt.map(([row, text]) => {
      if (row < firstRow || row > lastRow) return line(row, "", painted(text, 0, 0));
      const from = row === firstRow ? units(text, firstColumn - 1) : text.length - text.trimStart().length;
      return line(row, "", painted(text, from, row === lastRow ? units(text, lastColumn - 1) : text.length));
    });
    return block("The code", shown);
  }

  function block(label, lines) {
    const made = element("pre", "", element("code", "", ...lines));
    made.tabIndex = 0;
    made.setAttribute("aria-label", label);
    return made;
  }

  function change(hunks) {
    const classes = {"+": "added", "-": "removed", " ": ""};
    const lines = hunks.flatMap(([row, changed]) => {
      let old = row;
      return changed.map(([sign, text]) => {
        const made = line(sign === "+" ? "" : old, classes[sign], document.createTextNode(`${sign} ${text}`));
        if (sign !== "+") old += 1;
        return made;
      });
    });
    return block("The fix as a diff", lines);
  }

  // ---- findings and their groups ----------------------------------------------------------------------------------

  function card(finding, grouping) {
    const rule = data.rules[finding.code];
    const [row, column] = finding.range[0];
    const cell = finding.cell === null ? "" : `cell ${finding.cell}`;
    const place = element("span", "place", grouping === "file" ? `${cell} line ${row}`.trim()
      : `${path(finding)}:${cell && cell + ":"}${row}:${column}`);
    const title = grouping === "file"
      ? element("h3", "", element("span", "code-name", finding.code), ` ${rule.name} `, place)
      : element("h3", "", place);
    const made = element("article", "finding", title);
    if (finding.severity === "error") title.append(" ", element("span", "tag error", "error"));
    if (grouping === "file" && rule.gain) title.append(" ", element("span", "gain", `measured: ${rule.gain}`));
    made.append(element("p", "", prose(finding.message)));
    if (finding.excerpt.length) made.append(excerpt(finding));
    if (finding.fix) {
      const fix = finding.fix;
      made.append(element("p", "", element("span", `tag ${fix.safety}`, FIXES[fix.safety]), " ", prose(fix.message + (fix.why ? ` (${fix.why})` : ""))));
      if (fix.hunks.length) made.append(change(fix.hunks));
    }
    return made;
  }

  function prose(text) {
    const made = document.createDocumentFragment();
    text.split(/`([^`]+)`/).forEach((part, index) => made.append(index % 2 ? element("code", "", part) : part.replaceAll("**", "")));
    return made;
  }

  function help(text) {
    const made = element("details", "help", element("summary", "", "Why it costs, and what to write instead"));
    text.split(/^```\w*\n([\s\S]*?)^```$/m).forEach((part, index) => {
      if (index % 2) {
        made.append(element("pre", "text", element("code", "", part)));
        return;
      }
      for (const paragraph of part.split(/\n\s*\n/)) {
        if (paragraph.trim().startsWith("#")) made.append(element("h4", "", prose(paragraph.replace(/^\s*#+\s*/, ""))));
        else if (paragraph.trim()) made.append(element("p", "", prose(paragraph.trim())));
      }
    });
    return made;
  }

  function heading(key, grouping, findings) {
    const total = element("span", "total", counted(findings.length, "finding"));
    if (grouping === "file") return element("summary", "", total, element("span", "place", key));
    const rule = data.rules[key];
    const gain = rule.gain ? element("span", "gain", ` measured: ${rule.gain}`) : null;
    return element("summary", "", total, element("span", "code-name", key), ` ${rule.name}`, gain, element("div", "soft", prose(rule.summary)));
  }

  function section(key, grouping, findings, open) {
    const body = element("div", "body");
    const made = element("details", "group", heading(key, grouping, findings), body);
    const list = element("div");
    const more = element("button", "more");
    let shown = 0;
    const grow = () => {
      list.append(...findings.slice(shown, shown + STEP).map((finding) => card(finding, grouping)));
      shown = Math.min(shown + STEP, findings.length);
      more.hidden = shown === findings.length;
      more.textContent = `Show ${Math.min(STEP, findings.length - shown)} more of ${counted(findings.length - shown, "finding")}`;
    };
    const fill = () => {
      if (!made.open || shown) return;
      if (grouping === "rule") {
        body.append(...data.rules[key].evidence.map(([confirmed, sentence]) => element("p", confirmed ? "gain" : "soft", sentence)));
        if (data.rules[key].help) body.append(help(data.rules[key].help));
      }
      body.append(list, more);
      grow();
    };
    more.type = "button";
    more.addEventListener("click", grow);
    made.addEventListener("toggle", fill);
    made.open = open;
    fill();
    return made;
  }

  // ---- filters: their state is the fragment of the address, so that links to a view work ---------------------------

  function haystack(finding) {
    if (!words.has(finding)) {
      const source = finding.excerpt.map(([, text]) => text).join("\n");
      const all = [path(finding), finding.code, data.rules[finding.code].name, finding.message, finding.fix ? finding.fix.message : "", source];
      words.set(finding, all.join("\n").toLowerCase());
    }
    return words.get(finding);
  }

  function matching() {
    const wanted = controls.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    return data.findings.filter((finding) => (!controls.rule.value || finding.code === controls.rule.value)
      && (!controls.fix.value || safety(finding) === controls.fix.value)
      && (!controls.severity.value || finding.severity === controls.severity.value)
      && wanted.every((word) => haystack(finding).includes(word)));
  }

  function show() {
    const grouping = controls.group.value;
    const found = matching();
    const groups = new Map();
    for (const finding of found) {
      const key = grouping === "file" ? path(finding) : finding.code;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(finding);
    }
    const ordered = [...groups].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
    const files = new Set(found.map((finding) => finding.file)).size;
    byId("count").textContent = `${found.length.toLocaleString("en")} of ${counted(data.findings.length, "finding")}, in ${counted(files, "file")}`;
    byId("list").replaceChildren(...ordered.map(([key, findings]) => section(key, grouping, findings, found.length <= FEW || ordered.length === 1)));
    if (!found.length) byId("list").append(element("p", "empty", "No finding matches these filters."));
  }

  function remember() {
    const state = new URLSearchParams();
    for (const [name, control] of Object.entries(controls)) if (control.value && control.value !== "rule") state.set(name, control.value);
    history.replaceState(null, "", "#" + state);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, control] of Object.entries(controls)) {
      control.value = state.get(name) ?? (name === "group" ? "rule" : "");
      if (control.selectedIndex === -1) control.selectedIndex = 0;
    }
    show();
  }

  function offer(control, values, label) {
    for (const value of values) {
      const option = element("option", "", label(value));
      option.value = value;
      control.append(option);
    }
  }

  function start() {
    const present = (of) => [...new Set(data.findings.map(of))].sort();
    offer(controls.rule, present((finding) => finding.code), (code) => `${code} ${data.rules[code].name}`);
    offer(controls.fix, present(safety), (name) => FIXES[name]);
    offer(controls.severity, present((finding) => finding.severity), (name) => name);
    byId("findings").hidden = !data.findings.length;
    let waiting = 0;
    byId("filters").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { remember(); show(); }, 80);
    });
    byId("filters").addEventListener("reset", () => setTimeout(() => { remember(); show(); }));
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", recall);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      controls.q.focus();
    });
    byId("theme").addEventListener("click", () => {
      const names = Object.keys(THEMES);
      const next = names[(names.indexOf(document.documentElement.dataset.theme || "system") + 1) % names.length];
      document.documentElement.dataset.theme = next;
      byId("theme").textContent = `Theme: ${THEMES[next]}`;
    });
    recall();
  }

  start();
})();
