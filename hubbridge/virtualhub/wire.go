package virtualhub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// wire is as much of MQTT 3.1.1 as a hub of a fleet needs, without a goroutine: one reads, any may
// write. QoS 0 only. The MQTT library's client has some eight goroutines a connection, which is the
// better part of a fleet's memory.
type wire struct {
	conn   net.Conn
	reader *bufio.Reader
	prefix string // hub/<id>/

	mu     sync.Mutex // for writing
	buffer []byte
}

// connectWire connects, subscribes to ack and request, and returns when the broker has confirmed
// both. Errors are *connectError.
func connectWire(ctx context.Context, i *identity, keepAlive time.Duration) (*wire, error) {
	g, err := dial(ctx, i)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, g.cut)
	defer stop()
	w := &wire{conn: g, reader: bufio.NewReaderSize(g, 1024), prefix: "hub/" + i.HubID + "/"}
	if err := w.greet(i.HubID, keepAlive); err != nil {
		_ = g.Close()
		return nil, &connectError{joining, err}
	}
	return w, nil
}

func (w *wire) greet(clientID string, keepAlive time.Duration) error {
	if err := w.conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion = "MQTT", 4
	connect.CleanSession, connect.ClientIdentifier, connect.Keepalive = true, clientID, uint16(
		keepAlive/time.Second,
	)
	if err := connect.Write(w.conn); err != nil {
		return err
	}
	p, err := packets.ReadPacket(w.reader)
	if err != nil {
		return err
	}
	connack, ok := p.(*packets.ConnackPacket)
	if !ok {
		return fmt.Errorf("a %T in place of a CONNACK", p)
	}
	if connack.ReturnCode != packets.Accepted {
		return packets.ConnErrors[connack.ReturnCode]
	}
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.MessageID, subscribe.Topics, subscribe.Qoss = 1, []string{
		w.prefix + "ack",
		w.prefix + "request",
	}, []byte{
		0,
		0,
	}
	if err := subscribe.Write(w.conn); err != nil {
		return err
	}
	if p, err = packets.ReadPacket(w.reader); err != nil {
		return err
	}
	suback, ok := p.(*packets.SubackPacket)
	if !ok || len(suback.ReturnCodes) != 2 ||
		max(suback.ReturnCodes[0], suback.ReturnCodes[1]) > 2 {
		return errors.New("the broker refuses the subscriptions")
	}
	return w.conn.SetDeadline(time.Time{})
}

// read returns the next message, by the topic's part below hub/<id>/. quiet is how long nothing at
// all may come.
func (w *wire) read(quiet time.Duration) (suffix string, payload []byte, err error) {
	for {
		if err := w.conn.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return "", nil, err
		}
		p, err := packets.ReadPacket(w.reader)
		if err != nil {
			return "", nil, err
		}
		publish, ok := p.(*packets.PublishPacket)
		if !ok {
			continue // PINGRESP
		}
		if suffix, ok := strings.CutPrefix(publish.TopicName, w.prefix); ok && publish.Qos == 0 {
			return suffix, publish.Payload, nil
		}
	}
}

// publish writes a PUBLISH in one write.
func (w *wire) publish(suffix string, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	topic := len(w.prefix) + len(suffix)
	length := 2 + topic + len(payload)
	b := append(w.buffer[:0], packets.Publish<<4)
	for rest := length; ; { // MQTT 3.1.1 section 2.2.3: seven bits a byte
		digit := byte(rest & 0x7f)
		if rest >>= 7; rest == 0 {
			b = append(b, digit)
			break
		}
		b = append(b, digit|0x80)
	}
	b = append(b, byte(topic>>8), byte(topic))
	b = append(append(append(b, w.prefix...), suffix...), payload...)
	if cap(b) <= 4<<10 { // an idle hub holds no large buffer
		w.buffer = b
	}
	return w.write(b)
}

func (w *wire) ping() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write([]byte{packets.Pingreq << 4, 0})
}

func (w *wire) write(b []byte) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	n, err := w.conn.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// close ends the connection; with a DISCONNECT when polite.
func (w *wire) close(polite bool) {
	if polite {
		w.mu.Lock()
		_ = w.write([]byte{packets.Disconnect << 4, 0})
		w.mu.Unlock()
	}
	_ = w.conn.Close()
}
