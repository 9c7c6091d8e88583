# A deck that leaves by "exit" writes what it has so far and ends with status 0, as if it had checked everything. The
# thread ends the deck and its children if the process that waits for them was killed.
[Kernel.singleton_class, Process.singleton_class, Kernel].each do |place|
  place.class_eval do
    def exit(*args)
      raise "the deck called exit before its end"
    end
    alias_method :exit!, :exit
    alias_method :abort, :exit
  end
end
parent = Process.ppid
Thread.new do
  sleep 1 while Process.ppid == parent
  Process.kill(:KILL, 0)
end
