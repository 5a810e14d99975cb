package hub

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// connectTimeout bounds TCP and TLS of a connect together, and then MQTT.
	connectTimeout = 15 * time.Second
	// writeTimeout bounds one write to the broker.
	writeTimeout = 5 * time.Second
)

// connectError is the error of a connect. The hub decides by it whether a new certificate may help.
type connectError struct {
	// reached is false if no broker answers at the address. Otherwise TLS failed, or CONNECT or the
	// subscriptions were rejected.
	reached bool
	err     error
}

func (e *connectError) Error() string { return fmt.Sprintf("connect: %v", e.err) }

func (e *connectError) Unwrap() error { return e.err }

// needsCertificate reports whether a new certificate is likely to help: the broker rejected the
// hub's certificate. It is false for a connection that was merely closed, which has many other
// causes.
func (e *connectError) needsCertificate() bool {
	var remote *net.OpError
	return errors.Is(e.err, packets.ErrorRefusedNotAuthorised) ||
		errors.Is(e.err, packets.ErrorRefusedBadUsernameOrPassword) ||
		errors.As(e.err, &remote) && remote.Op == "remote error" // a TLS alert
}

// untrusted reports whether the hub did not trust the broker's certificate.
func (e *connectError) untrusted() bool {
	var verification *tls.CertificateVerificationError
	return errors.As(e.err, &verification)
}

// conn is an MQTT 3.1.1 connection with QoS 0 and without goroutines, so that one process can run
// many hubs: one goroutine reads, any number may write.
type conn struct {
	conn   net.Conn
	reader *bufio.Reader
	prefix string                   // of topics: hub/<id>/
	early  []*packets.PublishPacket // arrived before the SUBACK, which MQTT allows

	mu sync.Mutex // serializes writes
}

// connect connects to the broker with dial, TLS and MQTT, and subscribes to acks and requests. Its
// errors are *connectError.
func connect(
	ctx context.Context, cfg Config, id *identity,
) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := cfg.Dial(dialCtx, "tcp", id.address)
	if err != nil {
		return nil, &connectError{false, err}
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	secure := tls.Client(raw, id.tlsConfig())
	if err := secure.HandshakeContext(dialCtx); err != nil {
		_ = raw.Close()
		return nil, &connectError{true, err}
	}
	c := &conn{
		conn: secure, reader: bufio.NewReaderSize(secure, 1024), prefix: "hub/" + id.HubID + "/",
	}
	if err := c.handshake(id.HubID, cfg.KeepAlive); err != nil {
		_ = raw.Close()
		return nil, &connectError{true, err}
	}
	return c, nil
}

// handshake sends CONNECT and SUBSCRIBE and waits for the broker's answers. The hub must not
// publish before that: the broker would drop the acks.
func (c *conn) handshake(clientID string, keepAlive time.Duration) error {
	if err := c.conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion = "MQTT", 4
	connect.CleanSession, connect.ClientIdentifier = true, clientID
	connect.Keepalive = uint16(keepAlive / time.Second)
	if err := connect.Write(c.conn); err != nil {
		return err
	}
	p, err := ReadPacket(c.reader)
	if err != nil {
		return err
	}
	connack, ok := p.(*packets.ConnackPacket)
	if !ok {
		return fmt.Errorf("received %T, want CONNACK", p)
	}
	if connack.ReturnCode != packets.Accepted {
		return cmp.Or(
			packets.ConnErrors[connack.ReturnCode],
			fmt.Errorf("the broker answered CONNECT with the code %d", connack.ReturnCode),
		)
	}
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.MessageID = 1
	subscribe.Topics = []string{c.prefix + "ack", c.prefix + "request"}
	subscribe.Qoss = []byte{0, 0}
	if err := subscribe.Write(c.conn); err != nil {
		return err
	}
	for {
		if p, err = ReadPacket(c.reader); err != nil {
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
		max(suback.ReturnCodes[0], suback.ReturnCodes[1]) > 2 { // MQTT 3.1.1 section 3.9.3
		return errors.New("the broker rejected the subscriptions")
	}
	return c.conn.SetDeadline(time.Time{})
}

// read returns the next message of the broker and the part of its topic after hub/<id>/, or "" for
// any other packet.
func (c *conn) read() (suffix string, payload []byte, err error) {
	var publish *packets.PublishPacket
	if len(c.early) > 0 {
		publish, c.early = c.early[0], c.early[1:]
	} else {
		p, err := ReadPacket(c.reader)
		if err != nil {
			return "", nil, err
		}
		var ok bool
		if publish, ok = p.(*packets.PublishPacket); !ok {
			return "", nil, nil // PINGRESP
		}
	}
	suffix, _ = strings.CutPrefix(publish.TopicName, c.prefix)
	return suffix, publish.Payload, nil
}

// publish sends a PUBLISH packet.
func (c *conn) publish(suffix string, payload []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = c.prefix+suffix, payload
	return c.write(p)
}

func (c *conn) ping() error { return c.write(packets.NewControlPacket(packets.Pingreq)) }

func (c *conn) write(p packets.ControlPacket) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return p.Write(c.conn)
}

// goodbye closes the connection after a DISCONNECT packet.
func (c *conn) goodbye() {
	_ = c.write(packets.NewControlPacket(packets.Disconnect))
	c.close()
}

// close closes the connection, which ends a read.
func (c *conn) close() { _ = c.conn.Close() }
