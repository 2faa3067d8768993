# Turns a started Ruby into a server of copies of itself. The text that follows this one runs in each copy.
# ARGV: the zygote library. Descriptors: 0 to 4 are open, 3 is the warden's socket.
require ARGV[0]
$LOADED_FEATURES.delete(ARGV.shift)
GC.start
cordon_zygote_fork
[Kernel, Kernel.singleton_class].each { |holder| holder.send(:remove_method, :cordon_zygote_fork) }
