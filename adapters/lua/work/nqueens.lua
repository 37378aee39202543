-- SPDX-License-Identifier: MIT
-- Queens on a board of 9 squares: loops, tables, a stack of about ten frames.
local SIZE = 9
local function is_free(board, row, column)
  for r = 1, row - 1 do
    local c = board[r]
    if c == column or c - r == column - row or c + r == column + row then return false end
  end
  return true
end
local function place(board, row)
  if row > SIZE then return 1 end
  local found = 0
  for column = 1, SIZE do
    if is_free(board, row, column) then
      board[row] = column
      found = found + place(board, row + 1)
    end
  end
  return found
end
for _ = 1, arg[1] or 70 do assert(place({}, 1) == 352) end
