# SPDX-License-Identifier: MIT
# Coro's coroutines, with C stacks of their own, and channels.
use strict;
use warnings;
use Coro;
use Coro::Channel;

my ($scale, $sum) = (shift, 0);
sub deep { my ($n, $channel) = @_; return $n ? 1 + deep($n - 1, $channel) : do { cede; $channel->put("x"); 0 } }
for my $round (1 .. $scale * 5) {
	my $channel = Coro::Channel->new;
	my @all = map { my $n = $_; async { $sum += deep($n, $channel); $sum += length $channel->get;
		(my $text = "ab" x 20) =~ s/(a)/cede; uc $1/ge; # a callback from C code that switches
		$sum += length $text; eval { die "y\n" }; $sum += length $@; } } 1 .. 20;
	$_->join for @all;
}
print "$sum\n";
