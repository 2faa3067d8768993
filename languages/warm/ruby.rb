# Waits while ruby has opened the entry and not begun to parse it, then fills it in. Required by -r. With the zygote library
# loaded, fork() returns in every copy of this process.
File.unlink(__FILE__) if File.exist?(__FILE__)
lambda do
  %w[PWD OLDPWD SHLVL _].each { |name| ENV.delete(name) } # of the shell that started this
  locale = Encoding.find('locale')
  placeholder = $0
  opened = ObjectSpace.each_object(File).select { |file| !file.closed? && file.path == placeholder }
  message = String.new(capacity: 1 << 17)

  # What comes with a program that has neither arguments nor variables: but for the length of its source, and that itself.
  usual = ['code', placeholder, '0', '0', '1', placeholder, '644']
  usual_lengths, usual_items = usual.map { |item| "#{item.bytesize} " }.join, usual.join

  # Writes what came, and tells the entry.
  unpack = lambda do |start|
    lengths = message[0, start].split.map(&:to_i)
    item = -> { (start += lengths.first) && message.byteslice(start - lengths.first, lengths.shift) }
    text = -> { item.().force_encoding(locale) }
    list = ->(&each) { Array.new(item.().to_i) { each.() } }

    item.()
    entry = text.()
    ARGV.replace(list.(&text))
    list.() { name, value = text.().split('=', 2); ENV[name] = value }
    File.unlink(placeholder) if entry != placeholder && File.exist?(placeholder)
    list.() do
      path, mode, content = text.(), item.().to_i(8), item.()
      folder = File.dirname(path)
      folder.split('/').inject { |above, name| Dir.exist?(above) || Dir.mkdir(above); "#{above}/#{name}" }
      Dir.exist?(folder) || Dir.mkdir(folder)
      File.binwrite(path, content)
      File.chmod(mode, path)
    end
    entry
  end

  # The same, and makes what is open ready to be read.
  take = lambda do
    start = message.index("\n") + 1
    if message.start_with?(usual_lengths) && message.byteslice(start, usual_items.bytesize) == usual_items
      entry, content = placeholder, message.byteslice(start + usual_items.bytesize, message.bytesize).b
      File.binwrite(placeholder, content)
      File.chmod(0o644, placeholder)
    else
      entry = unpack.(start)
      content = File.binread(placeholder, 200).to_s if entry == placeholder
    end
    # Options in a first line of the program were looked for before it came.
    exec('ruby', entry, *ARGV) if entry != placeholder || content.byteslice(0, 200).match?(/\A#!.*ruby.*\s-/n)
    opened.each { |file| file.reopen(placeholder) }
  end

  # The way of a program, so that the memory it takes is there before anybody waits.
  rehearse = lambda do
    program = %q(puts [1.5, 'a'].map { |x| "#{x}" }.inspect)
    [usual, ['code', placeholder, '1', '-', '1', 'WARM=1', '1', placeholder, '644']].each do |items|
      items += [program]
      message.replace("#{items.map(&:bytesize).join(' ')}\n#{items.join}")
      take.()
    end
    RubyVM::InstructionSequence.compile(program) if defined?(RubyVM::InstructionSequence)
    File.open('/dev/null', 'w') { |null| null.puts(6 * 7) }
    ARGV.clear
    ENV.delete('WARM')
  end

  3.times { rehearse.() }
  zygote = ENV.delete('LD_PRELOAD')
  opened.each { |file| file.reopen('/dev/null') } if zygote # every copy gets its own
  GC.start
  fork if zygote

  channel = IO.for_fd(4, 'r+')
  unless zygote && IO.select([channel], nil, nil, 0)
    rehearse.() if zygote
    channel.syswrite('r')
  end
  begin
    channel.sysread(1 << 17, message)
  rescue EOFError
    exit!(0)
  end
  channel.close
  take.()
end.()
