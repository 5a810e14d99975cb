package fleet

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

	"hubcloud/hubbridge/kit/hub/brokerconn"
	"hubcloud/hubbridge/kit/hub/enrolment"
)

// mqttConn is an MQTT 3.1.1 connection with QoS 0 and without goroutines: one goroutine reads, any
// number may write. The paho client runs about eight goroutines per connection, which would take
// most of a fleet's memory.
type mqttConn struct {
	conn   net.Conn
	reader *bufio.Reader
	prefix string                   // of topics: hub/<id>/
	early  []*packets.PublishPacket // arrived before the SUBACK, which MQTT allows

	mu     sync.Mutex // serializes writes
	buffer []byte     // reused by publish
}

// connectMQTT connects and subscribes to acks and requests. Its errors are *brokerconn.Error.
func connectMQTT(
	ctx context.Context, identity *enrolment.Identity, keepAlive time.Duration,
) (*mqttConn, error) {
	conn, err := brokerconn.Dial(
		ctx, new(net.Dialer).DialContext, identity.Address(), identity.TLSConfig(),
	)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.NetConn().Close() })
	defer stop()
	c := &mqttConn{
		conn: conn, reader: bufio.NewReaderSize(conn, 1024), prefix: "hub/" + identity.HubID + "/",
	}
	if err := c.handshake(identity.HubID, keepAlive); err != nil {
		_ = conn.Close()
		return nil, &brokerconn.Error{Stage: brokerconn.StageMQTT, Err: err}
	}
	return c, nil
}

// handshake sends CONNECT and SUBSCRIBE and waits for the broker's answers.
func (c *mqttConn) handshake(clientID string, keepAlive time.Duration) error {
	if err := c.conn.SetDeadline(time.Now().Add(brokerconn.ConnectTimeout)); err != nil {
		return err
	}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion = "MQTT", 4
	connect.CleanSession, connect.ClientIdentifier = true, clientID
	connect.Keepalive = uint16(keepAlive / time.Second)
	if err := connect.Write(c.conn); err != nil {
		return err
	}
	p, err := packets.ReadPacket(c.reader)
	if err != nil {
		return err
	}
	connack, ok := p.(*packets.ConnackPacket)
	if !ok {
		return fmt.Errorf("received %T, want CONNACK", p)
	}
	if connack.ReturnCode != packets.Accepted {
		return packets.ConnErrors[connack.ReturnCode]
	}
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.MessageID = 1
	subscribe.Topics = []string{c.prefix + "ack", c.prefix + "request"}
	subscribe.Qoss = []byte{0, 0}
	if err := subscribe.Write(c.conn); err != nil {
		return err
	}
	for {
		if p, err = packets.ReadPacket(c.reader); err != nil {
			return err
		}
		publish, ok := p.(*packets.PublishPacket)
		if !ok {
			break
		}
		c.early = append(c.early, publish)
	}
	suback, ok := p.(*packets.SubackPacket)
	if !ok || len(suback.ReturnCodes) != 2 ||
		max(suback.ReturnCodes[0], suback.ReturnCodes[1]) > 2 {
		return errors.New("the broker rejected the subscriptions")
	}
	return c.conn.SetDeadline(time.Time{})
}

// read returns the next message and the part of its topic after hub/<id>/. It fails if nothing
// arrives for as long as timeout.
func (c *mqttConn) read(timeout time.Duration) (suffix string, payload []byte, err error) {
	for {
		publish, err := c.next(timeout)
		if err != nil {
			return "", nil, err
		}
		if suffix, ok := strings.CutPrefix(publish.TopicName, c.prefix); ok && publish.Qos == 0 {
			return suffix, publish.Payload, nil
		}
	}
}

// next returns the next PUBLISH packet. It fails if no packet arrives for as long as timeout.
func (c *mqttConn) next(timeout time.Duration) (*packets.PublishPacket, error) {
	if len(c.early) > 0 {
		publish := c.early[0]
		c.early = c.early[1:]
		return publish, nil
	}
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return nil, err
		}
		p, err := packets.ReadPacket(c.reader)
		if err != nil {
			return nil, err
		}
		if publish, ok := p.(*packets.PublishPacket); ok {
			return publish, nil
		} // otherwise PINGRESP
	}
}

// publish sends a PUBLISH packet in one write.
func (c *mqttConn) publish(suffix string, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	topic := len(c.prefix) + len(suffix)
	length := 2 + topic + len(payload)
	b := append(c.buffer[:0], packets.Publish<<4)
	for rest := length; ; { // MQTT 3.1.1 section 2.2.3: seven bits per byte
		digit := byte(rest & 0x7f)
		if rest >>= 7; rest == 0 {
			b = append(b, digit)
			break
		}
		b = append(b, digit|0x80)
	}
	b = append(b, byte(topic>>8), byte(topic))
	b = append(append(append(b, c.prefix...), suffix...), payload...)
	if cap(b) <= 4<<10 { // an idle hub keeps no large buffer
		c.buffer = b
	}
	return c.write(b)
}

func (c *mqttConn) ping() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write([]byte{packets.Pingreq << 4, 0})
}

func (c *mqttConn) write(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(brokerconn.WriteTimeout)); err != nil {
		return err
	}
	n, err := c.conn.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// close closes the connection, after a DISCONNECT packet if graceful.
func (c *mqttConn) close(graceful bool) {
	if graceful {
		c.mu.Lock()
		_ = c.write([]byte{packets.Disconnect << 4, 0})
		c.mu.Unlock()
	}
	_ = c.conn.Close()
}
