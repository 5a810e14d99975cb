package bench

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const roleWeb = "web"

// bareWeb is a net/http server in its own process that writes given bytes from memory.
type bareWeb struct {
	mu     sync.Mutex
	topics map[string]*topic
}

// topic is the source of a set of event streams: a linked list of frames, each with a signal for
// the next one, so that no reader delays another.
type topic struct {
	last atomic.Pointer[link]
}

type link struct {
	frame []byte
	next  *link
	ready chan struct{} // closed when next is set
}

func runBareWeb() (bareReady, error) {
	w := &bareWeb{topics: map[string]*topic{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stream/{topic}", w.serveStream)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return bareReady{}, err
	}
	feed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return bareReady{}, err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	go w.receiveFeeds(feed)
	return bareReady{HTTP: listener.Addr().String(), Feed: feed.Addr().String()}, nil
}

func (w *bareWeb) topic(name string) *topic {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.topics[name]
	if !ok {
		t = &topic{}
		t.last.Store(&link{ready: make(chan struct{})})
		w.topics[name] = t
	}
	return t
}

// receiveFeeds accepts connections that each send a sequence of frames: a topic of 16 bits, a
// length of 32 bits, and the frame.
func (w *bareWeb) receiveFeeds(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if err := w.receiveFeed(bufio.NewReader(conn)); !errors.Is(err, io.EOF) {
				panic(err)
			}
		}()
	}
}

func (w *bareWeb) receiveFeed(from *bufio.Reader) error {
	topics := map[uint16]*topic{}
	var head [6]byte
	for {
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return err
		}
		number := binary.BigEndian.Uint16(head[:2])
		frame := make([]byte, binary.BigEndian.Uint32(head[2:]))
		if _, err := io.ReadFull(from, frame); err != nil {
			return err
		}
		t, ok := topics[number]
		if !ok {
			t = w.topic(strconv.Itoa(int(number)))
			topics[number] = t
		}
		t.add(frame)
	}
}

// add passes a frame on to the readers. A topic has one source at a time.
func (t *topic) add(frame []byte) {
	last := t.last.Load()
	last.next = &link{frame: frame, ready: make(chan struct{})}
	t.last.Store(last.next)
	close(last.ready)
}

// feedFrame encodes a frame for receiveFeed.
func feedFrame(topic uint16, frame []byte) []byte {
	packet := binary.BigEndian.AppendUint16(nil, topic)
	packet = binary.BigEndian.AppendUint32(packet, uint32(len(frame)))
	return append(packet, frame...)
}

// streamGreeting is the first block of a stream: a position, as the service sends one.
const streamGreeting = "id: AAAAAAAAAAAAAAAAAAAAAAAAAAAA\n\n"

// serveStream writes the greeting, and then each new frame of the topic.
func (w *bareWeb) serveStream(answer http.ResponseWriter, r *http.Request) {
	at := w.topic(r.PathValue("topic")).last.Load()
	header := answer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	control := http.NewResponseController(answer)
	io.WriteString(answer, streamGreeting)
	if control.Flush() != nil {
		return
	}
	keepalive := time.NewTicker(30 * time.Second)
	defer keepalive.Stop()
	for {
		select {
		case <-at.ready:
			at = at.next
			answer.Write(at.frame)
		case <-keepalive.C:
			io.WriteString(answer, ": keepalive\n"+streamGreeting)
		case <-r.Context().Done():
			return
		}
		if control.Flush() != nil {
			return
		}
	}
}
