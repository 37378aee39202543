-- SPDX-License-Identifier: MIT
-- C functions, with callbacks in Lua: gsub, sort, concat, format.
local text = ("some words and more of them, "):rep(50)
local function upper(word) return word:upper() end
local function less(a, b) return #a == #b and a < b or #a < #b end
for i = 1, 100 * (arg[1] or 25) do
  local words = {}
  for word in text:gmatch("%a+") do words[#words + 1] = word .. i % 10 end
  table.sort(words, less)
  local line = table.concat(words, " "):gsub("%a+", upper)
  assert(#string.format("%s:%d", line, i) > 100)
end
