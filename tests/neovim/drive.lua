-- Opens a file, edits it without saving, and writes what Neovim was told of it, and what it did, to a file as JSON.
local file, answers = vim.env.DRIVE_FILE, vim.env.DRIVE_ANSWERS
local seen = {}

local function codes()
  return vim.tbl_map(function(each) return (each.lnum + 1) .. " " .. each.code end, vim.diagnostic.get(0))
end

local function wait(count, name)
  if not vim.wait(60000, function() return #vim.diagnostic.get(0) == count end, 10) then
    seen.gave_up = name
  end
  seen[name] = codes()
end

local function hovered(row)
  vim.api.nvim_win_set_cursor(0, { row, 5 })
  local before = #vim.api.nvim_list_wins()
  vim.lsp.buf.hover()
  assert(vim.wait(60000, function() return #vim.api.nvim_list_wins() > before end, 10), "nothing is shown")
  local windows = vim.api.nvim_list_wins()
  local shown = vim.api.nvim_win_get_buf(windows[#windows])
  local text = table.concat(vim.api.nvim_buf_get_lines(shown, 0, -1, false), "\n")
  vim.api.nvim_win_close(windows[#windows], true)
  return text
end

-- What the user does who puts the cursor on a row, asks for code actions, and takes the first.
local function act(row, only)
  vim.ui.select = function(items, _, choose)
    seen.chosen = (items[1].action or items[1][2]).title
    choose(items[1])
  end
  vim.api.nvim_win_set_cursor(0, { row, 5 })
  vim.lsp.buf.code_action({ context = { only = only } })
end

local function drive()
  vim.cmd("edit " .. file)
  wait(3, "opened")
  local client = select(2, next(vim.lsp.buf_get_clients(0)))
  seen.server = client.name
  seen.columns = vim.tbl_map(function(each) return each.col end, vim.diagnostic.get(0))
  seen.hover = hovered(3)
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "import os", "torch.autograd.set_detect_anomaly(True)" })
  wait(4, "typed")
  vim.cmd("undo")
  wait(3, "undone")
  act(10, { "quickfix" })
  wait(2, "after_the_quick_fix")
  seen.fixed = seen.chosen
  act(1, { "source.fixAll" })
  wait(1, "after_fix_all")
  seen.fixed_all = seen.chosen
  seen.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n"
  seen.is_modified = vim.bo.modified
end

local fine, problem = pcall(drive)
if not fine then seen.problem = tostring(problem) end
local output = io.open(answers, "w")
output:write(vim.fn.json_encode(seen))
output:close()
vim.lsp.stop_client(vim.lsp.get_active_clients())
vim.wait(5000, function() return #vim.lsp.get_active_clients() == 0 end, 10)
vim.cmd("qall!")
