"""What the code means: scopes, names, values, roles, flow; the torch API as tables of data."""
