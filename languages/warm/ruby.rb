# Waits while ruby has opened the entry and not begun to parse it, then fills it in. Required by -r.
File.unlink(__FILE__) if File.exist?(__FILE__)
lambda do
  channel = IO.for_fd(4, 'r+')
  channel.syswrite('r')
  begin
    message = channel.sysread(1 << 17)
  rescue EOFError
    exit!(0)
  end
  channel.close

  start = message.index("\n") + 1
  lengths = message[0, start].split.map(&:to_i)
  item = -> { (start += lengths.first) && message.byteslice(start - lengths.first, lengths.shift) }
  text = -> { item.().force_encoding(Encoding.find('locale')) }
  list = ->(&each) { Array.new(item.().to_i) { each.() } }

  %w[PWD OLDPWD SHLVL _].each { |name| ENV.delete(name) } # of the shell that started this
  item.()
  entry = text.()
  ARGV.replace(list.(&text))
  list.() { name, value = text.().split('=', 2); ENV[name] = value }
  File.unlink($0) if entry != $0
  list.() do
    path, mode, content = text.(), item.().to_i(8), item.()
    folder = File.dirname(path)
    folder.split('/').inject { |above, name| Dir.exist?(above) || Dir.mkdir(above); "#{above}/#{name}" }
    Dir.exist?(folder) || Dir.mkdir(folder)
    File.binwrite(path, content)
    File.chmod(mode, path)
  end
  # Options in a first line of the program were looked for before it came.
  exec('ruby', entry, *ARGV) if entry != $0 || File.binread($0, 200).to_s.match?(/\A#!.*ruby.*\s-/n)
  # What it read was a placeholder.
  ObjectSpace.each_object(File) { |file| file.reopen($0) if !file.closed? && file.path == $0 }
end.()
