package bench

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"hubcloud/streams/streamstest"
)

// readers reads many open event streams with one thread, which costs little compared to the
// kernel's work for the sockets. The end of a stream, and any other answer, fails the test.
type readers struct {
	t     testing.TB
	epoll int
	ended chan struct{}

	mu      sync.Mutex
	stopped bool
	byFD    map[int32]*eventStream

	// greeted counts streams that received their first block.
	greeted int
	// events counts events since expect. latencies has the time from each event's stamp to its
	// arrival, in nanoseconds.
	events    int
	latencies []float64
	// Each stream waits for target events. done counts the streams that have them; finished is
	// closed when all count streams do.
	target, count, done int
	finished            chan struct{}
}

func newReaders(t testing.TB) *readers {
	t.Helper()
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	streamstest.Must(t, err)
	r := &readers{t: t, epoll: epoll, ended: make(chan struct{}), byFD: map[int32]*eventStream{}}
	go r.run()
	t.Cleanup(r.close)
	return r
}

// open connects to an address and sends the request for an event stream. The stream's first block
// comes later.
func (r *readers) open(address, request string) (*eventStream, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	to := &syscall.SockaddrInet4{Port: tcp.Port}
	copy(to.Addr[:], tcp.IP.To4())
	if err = syscall.Connect(fd, to); err == nil {
		_, err = syscall.Write(fd, []byte(request))
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	s := &eventStream{fd: fd, chunk: -1}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byFD[int32(fd)] = s
	return s, syscall.EpollCtl(
		r.epoll, syscall.EPOLL_CTL_ADD, fd,
		&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)},
	)
}

// expect resets the counts. The returned channel is closed when each of count streams has received
// target events.
func (r *readers) expect(count, target int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.latencies, r.done = 0, nil, 0
	r.count, r.target, r.finished = count, target, make(chan struct{})
	for _, s := range r.byFD {
		s.events = 0
	}
	return r.finished
}

// counted returns the events since expect, and their latencies.
func (r *readers) counted() (int, []float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events, r.latencies
}

// awaitGreeted waits until count streams have received their first block.
func (r *readers) awaitGreeted(count int) {
	r.t.Helper()
	streamstest.EventuallyNil(r.t, "every event stream has begun", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.greeted < count {
			return fmt.Errorf("got %d event streams, want %d", r.greeted, count)
		}
		return nil
	})
}

// closeStreams closes all streams.
func (r *readers) closeStreams() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for fd := range r.byFD {
		syscall.Close(int(fd))
	}
	clear(r.byFD)
	r.greeted = 0
}

// close closes all streams and stops run.
func (r *readers) close() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	<-r.ended
	r.closeStreams()
	syscall.Close(r.epoll)
}

// run reads until close.
func (r *readers) run() {
	defer close(r.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events := make([]syscall.EpollEvent, 1024)
	buf := make([]byte, 256<<10)
	for {
		n, err := syscall.EpollWait(r.epoll, events, 100)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			r.t.Error(err)
			return
		}
		if !r.readReady(events[:max(n, 0)], buf) {
			return
		}
	}
}

// readReady reads from the streams that have data.
func (r *readers) readReady(ready []syscall.EpollEvent, buf []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range ready {
		s, ok := r.byFD[e.Fd]
		if !ok {
			continue // closed meanwhile
		}
		n, err := syscall.Read(s.fd, buf)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = errors.New("it has ended")
		}
		if err == nil {
			err = s.decode(buf[:n], r)
		}
		if err != nil {
			syscall.Close(s.fd)
			delete(r.byFD, e.Fd)
			r.t.Errorf("an event stream: %v", err)
		}
	}
	return !r.stopped
}
