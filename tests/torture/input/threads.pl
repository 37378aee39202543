# SPDX-License-Identifier: MIT
# Interpreter threads that are cloned, die, and hand results back.
use strict;
use warnings;
use threads;
use Thread::Queue;

my ($scale, $sum) = (shift, 0);
for my $round (1 .. $scale) {
	my $queue = Thread::Queue->new(1 .. 100);
	$queue->end;
	my @threads = map { threads->create(sub {
		my $own = 0;
		while (defined(my $n = $queue->dequeue)) {
			eval { die "x" x $n if $n % 7 == 0 };
			$own += length join(",", map { $_ * $n } 1 .. 10);
		}
		return $own;
	}) } 1 .. 4;
	$sum += $_->join for @threads;
}
print "$sum\n";
