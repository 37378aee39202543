# SPDX-License-Identifier: MIT
# Continuations, whose stacks are copied, entered again from other depths.
require 'continuation'

def at_depth(n, &block)
  n > 0 ? at_depth(n - 1, &block) + 'x' : block.call
end

def enter_again(k, n)
  n > 0 ? enter_again(k, n - 1) : k.call
  'never'
end

rounds = 0
text = ''
(ARGV[0].to_i * 5).times do |i|
  count = 0
  k = nil
  text = at_depth(i % 20) { callcc { |c| k = c }; 'y' * (i % 7) }
  count += 1
  rounds += text.size
  n = rounds
  enter_again(k, i % 13) if n % 3 != 0 && count < 2 && (rounds += 1) % 2 == 0
end
puts rounds
