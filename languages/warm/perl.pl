# Waits while perl has opened the entry, still empty, and not begun to read it, then fills it in. Part of a BEGIN block put
# before the program, so nothing here outlives it.
open(my $channel, '+<&=', 4) or die "cannot open the channel: $!\n";
syswrite($channel, 'r');
my $length = sysread($channel, my $message, 1 << 17);
close($channel);
exit 0 unless $length;

my $start = 1 + index($message, "\n");
my @lengths = split(/ /, substr($message, 0, $start - 1));
my $item = sub { my $at = $start; $start += $lengths[0]; substr($message, $at, shift @lengths) };
my $list = sub { my $each = shift; map { $each->() } 1 .. $item->() };

$item->();
my $entry = $item->();
@ARGV = $list->($item);
delete @ENV{qw(PWD OLDPWD SHLVL _)};    # of the shell that started this
$list->(sub { my ($name, $value) = split(/=/, $item->(), 2); $ENV{$name} = $value; });
unlink $0 if $entry ne $0;
$list->(sub {
    my ($path, $mode, $content) = ($item->(), oct($item->()), $item->());
    mkdir substr($path, 0, pos($path) - 1) while $path =~ m{/}g;
    my $file;
    open($file, '>:raw', $path) && print({$file} $content) && close($file) or die "cannot write $path: $!\n";
    chmod $mode, $path;
});
exec 'perl', $entry, @ARGV if $entry ne $0;
$! = 0;
