# SPDX-License-Identifier: MIT
# Exceptions, fibers, threads, catch and throw, regular expressions.
scale = ARGV[0].to_i

def deep(n)
  return [n] + deep(n - 1) if n > 0
  raise 'bottom'
end

total = 0
scale.times do |round|
  begin
    deep(50)
  rescue StandardError => e
    total += e.message.size
  end
  total += catch(:done) { 100.times { |i| throw :done, i if i == round % 50 } }
  fibers = (1..10).map { |n| Fiber.new { 10.times { |i| Fiber.yield 'x' * (n * i) }; 'end' } }
  10.times { fibers.each { |f| total += f.resume.size } }
  total += (1..4).map { |n| Thread.new { (1..200).map { |i| (i * n).to_s }.join.size } }.sum(&:value)
  total += ('ab' * 500).gsub(/(a|b)+?/) { |m| m.upcase }.size
  e = Enumerator.new { |y| 20.times { |i| y << 'y' * i } }
  20.times { total += e.next.size }
end
puts total
