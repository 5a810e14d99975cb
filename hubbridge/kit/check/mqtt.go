package check

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"hubcloud/hubbridge/kit/hub"
)

const (
	// connectLimit is the time for the TLS handshake and CONNECT together.
	connectLimit = 15 * time.Second
	// writeLimit is the time for one write.
	writeLimit = 10 * time.Second
	// maxConnections is how many connections may be open at once.
	maxConnections = 4
	// maxPackets is how many packets may wait for a hub that does not read them.
	maxPackets = 1024
)

// connection is one MQTT connection of the hub. Its fields are guarded by the Check's mutex, apart
// from the first ones, which do not change.
type connection struct {
	tls    *tls.Conn
	raw    net.Conn
	opened time.Time // when TCP was connected
	// keepAlive is the one of CONNECT.
	keepAlive time.Duration
	// packets wait to be written, so that nobody with the mutex waits for the hub.
	packets chan packets.ControlPacket

	number                     int
	ackGranted, requestGranted bool

	hellos int
	// helloAt is when the last hello arrived.
	helloAt time.Time
	// acked is whether a hello of the connection has been acknowledged.
	acked bool
	// next is the number of the hub's next new event; through is the last number acknowledged, and
	// throughs has all of them.
	next     uint64
	through  uint64
	throughs map[uint64]bool
	// resends counts the messages that began with a number that had arrived before; resentAt and
	// resentFrom are of the last.
	resends    int
	resentAt   time.Time
	resentFrom uint64
	// owed is how many events messages have not been answered with an ack.
	owed int
	// owedAt is when the first of them arrived.
	owedAt time.Time
}

// serveMQTT accepts connections until ctx ends, and waits for their ends.
func (c *Check) serveMQTT(ctx context.Context) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { _ = c.mqtt.Close() })
	defer stop()
	slots := make(chan struct{}, maxConnections)
	for {
		raw, err := c.mqtt.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept a connection: %w", err)
		}
		select {
		case slots <- struct{}{}:
			connections.Go(func() {
				defer func() { <-slots }()
				c.serveConnection(ctx, raw)
			})
		default:
			_ = raw.Close()
		}
	}
}

// serveConnection serves one TCP connection until it ends.
func (c *Check) serveConnection(ctx context.Context, raw net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	defer func() { _ = raw.Close() }()
	opened := time.Now()
	_ = raw.SetDeadline(opened.Add(connectLimit)) // fails only for a closed connection
	config, stranger := c.serverTLS()
	conn := tls.Server(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		c.handshakeFailed(err, stranger)
		return
	}
	reader := bufio.NewReader(conn)
	first, err := hub.ReadPacket(reader)
	if stranger || isClosed(err) {
		// Some TLS clients verify the certificate only after the handshake.
		c.judgeStranger(first, err, stranger)
		return
	}
	connect, ok := first.(*packets.ConnectPacket)
	if err != nil || !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail("connects", nil, "the first packet of a connection is no readable CONNECT: %v", err)
		return
	}
	k := &connection{
		tls: conn, raw: raw, opened: opened, throughs: map[uint64]bool{},
		packets: make(chan packets.ControlPacket, maxPackets),
	}
	answer := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	answer.ReturnCode = c.accept(k, connect)
	if answer.Write(conn) != nil {
		_ = raw.Close()
	}
	if answer.ReturnCode != packets.Accepted {
		return
	}
	_ = raw.SetDeadline(time.Time{}) // fails only for a closed connection
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { k.write(ended) })
	err = c.readPackets(k, reader)
	_ = raw.Close() // ends a write
	close(ended)
	writer.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == k {
		c.conn, c.endedAt = nil, time.Now()
	}
	timeout := net.Error(nil)
	switch {
	case errors.Is(err, hub.ErrPacketSize):
		c.fail(
			"message-size", nil, "a packet has more than 2 MiB; the service closes the connection",
		)
	case errors.As(err, &timeout) && timeout.Timeout():
		c.fail(
			"keep-alive", nil, "the hub sent nothing for %v, with a keep-alive of %v",
			k.silence(), k.keepAlive,
		)
	}
	c.notify()
}

// accept checks a CONNECT and returns the code of its CONNACK. A connection that it accepts takes
// the place of the former one.
func (c *Check) accept(k *connection, p *packets.ConnectPacket) (code byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.notify()
	if code = c.judgeConnect(k, p); code != packets.Accepted {
		return code
	}
	if c.conn != nil {
		_ = c.conn.raw.Close() // as the service's broker does
		if c.takeovers++; c.takeovers >= 3 {
			c.fail(
				"one-connection", nil, "opened connections %d times while another was open",
				c.takeovers,
			)
		}
	}
	c.connections++
	k.number, c.conn = c.connections, k
	return code
}

// judgeConnect checks a CONNECT and returns the code of its CONNACK. It accepts what is wrong but
// does not prevent the rest of the check. The caller holds the mutex.
func (c *Check) judgeConnect(k *connection, p *packets.ConnectPacket) byte {
	if p.ProtocolVersion != 4 || p.ProtocolName != "MQTT" {
		c.fail(
			"connects", nil, "CONNECT has protocol %q level %d, want \"MQTT\" level 4 (MQTT 3.1.1)",
			p.ProtocolName, p.ProtocolVersion,
		)
		return packets.ErrRefusedBadProtocolVersion
	}
	if c.rejectNext {
		c.rejectNext = false
		return packets.ErrRefusedNotAuthorised
	}
	if !c.judgeCertificate(k) {
		return packets.ErrRefusedNotAuthorised
	}
	c.judgeReconnect(k)
	c.pass("connects")
	c.verdict("client-id", p.ClientIdentifier == string(c.hub),
		"the client ID is %q, want %q", p.ClientIdentifier, c.hub)
	c.verdict("clean-session", p.CleanSession, "the flag clean session of CONNECT is 0, want 1")
	k.keepAlive = time.Duration(p.Keepalive) * time.Second
	if k.keepAlive < time.Second || k.keepAlive > time.Minute {
		c.fail("keep-alive", nil, "the keep-alive is %d s, want 1 to 60", p.Keepalive)
	}
	if p.WillFlag {
		c.fail("no-retain", p.WillMessage, "CONNECT has a will, on topic %q", p.WillTopic)
	}
	return packets.Accepted
}

// judgeCertificate reports whether the service would accept the certificate of the connection.
func (c *Check) judgeCertificate(k *connection) bool {
	leaf := k.tls.ConnectionState().PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	shown := hex.EncodeToString(sum[:])
	current, count := c.inventory.current()
	switch {
	case shown == current.Fingerprint:
		if count > 1 {
			c.pass("current-certificate")
		}
		return true
	case c.inventory.fromEarlierCheck(shown):
		return c.judgeEarlierCertificate()
	case c.inventory.has(shown):
		c.fail(
			"current-certificate", nil,
			"connected with a former certificate, which ends on %s; the service "+"rejects it",
			leaf.NotAfter.UTC().Format(time.DateOnly),
		)
		return true
	default:
		c.hint(
			"connects",
			"connected with a certificate that this check has not issued; the hub must enrol",
		)
		return false
	}
}

// minWait is the shortest wait before a hub connects again that is not counted as none: a second,
// which the protocol recommends, varied at random by half.
const minWait = 400 * time.Millisecond

// judgeReconnect checks the wait since the end of the former connection.
func (c *Check) judgeReconnect(k *connection) {
	if c.endedAt.IsZero() {
		return
	}
	wait := k.opened.Sub(c.endedAt)
	c.endedAt = time.Time{}
	c.verdict(
		"waits-to-reconnect", wait >= minWait,
		"connected again %v after the end of its connection, want 1 s or more",
		wait.Round(time.Millisecond),
	)
}

// verdict passes or fails a line.
func (c *Check) verdict(id string, ok bool, format string, args ...any) {
	if ok {
		c.pass(id)
	} else {
		c.fail(id, nil, format, args...)
	}
}

// end closes the connection of the hub, if it is connected. The caller holds the mutex.
func (c *Check) end() {
	if c.conn != nil {
		_ = c.conn.raw.Close()
		c.conn, c.endedAt = nil, time.Now()
		c.notify()
	}
}

// silence returns how long a hub may send nothing: the service's broker closes a connection that is
// silent for one and a half times its keep-alive.
func (k *connection) silence() time.Duration {
	return min(max(k.keepAlive, time.Second), time.Minute) * 3 / 2
}

// readPackets handles the packets of a connection until it ends.
func (c *Check) readPackets(k *connection, reader *bufio.Reader) error {
	for {
		_ = k.raw.SetReadDeadline(time.Now().Add(k.silence())) // fails only if it is closed
		p, err := hub.ReadPacket(reader)
		if err != nil {
			return err
		}
		if _, ok := p.(*packets.DisconnectPacket); ok {
			return nil
		}
		c.handlePacket(k, p)
	}
}

// handlePacket answers a packet, and handles its message if it has one.
func (c *Check) handlePacket(k *connection, packet packets.ControlPacket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.notify()
	switch p := packet.(type) {
	case *packets.PublishPacket:
		switch p.Qos {
		case 1:
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			k.send(answer)
		case 2:
			answer := packets.NewControlPacket(packets.Pubrec).(*packets.PubrecPacket)
			answer.MessageID = p.MessageID
			k.send(answer)
		}
		c.handlePublish(k, p)
	case *packets.SubscribePacket:
		c.handleSubscribe(k, p)
	case *packets.UnsubscribePacket:
		answer := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
		answer.MessageID = p.MessageID
		k.send(answer)
	case *packets.PubrelPacket:
		answer := packets.NewControlPacket(packets.Pubcomp).(*packets.PubcompPacket)
		answer.MessageID = p.MessageID
		k.send(answer)
	case *packets.PingreqPacket:
		k.send(packets.NewControlPacket(packets.Pingresp))
	}
}

// handleSubscribe grants ack and request with QoS 0, and rejects other topics.
func (c *Check) handleSubscribe(k *connection, p *packets.SubscribePacket) {
	answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	answer.MessageID = p.MessageID
	for _, topic := range p.Topics {
		code := byte(0)
		switch topic {
		case c.topic("ack"):
			k.ackGranted = true
		case c.topic("request"):
			k.requestGranted = true
		default:
			code = 0x80 // MQTT 3.1.1 section 3.9.3: failure
			c.fail("own-topics", nil, "subscribed to %q", bounded(topic, 100))
		}
		answer.ReturnCodes = append(answer.ReturnCodes, code)
	}
	k.send(answer)
}

// handlePublish checks a PUBLISH and handles its message.
func (c *Check) handlePublish(k *connection, p *packets.PublishPacket) {
	if p.Qos == 2 {
		c.fail(
			"no-qos-2", p.Payload, "published with QoS 2 to %q; the service closes the connection",
			bounded(p.TopicName, 100),
		)
	}
	if p.Retain {
		c.fail(
			"no-retain", p.Payload, "published a retained message to %q", bounded(p.TopicName, 100),
		)
	}
	c.pass("no-qos-2", "no-retain", "keep-alive", "own-topics")
	c.handleMessage(k, p.TopicName, p.Payload)
}

func (c *Check) topic(suffix string) string { return "hub/" + string(c.hub) + "/" + suffix }

// publish sends a message with QoS 0.
func (c *Check) publish(k *connection, suffix string, payload []byte) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = c.topic(suffix), payload
	k.send(p)
}

// send passes a packet on to write. The connection of a hub that does not read is closed.
func (k *connection) send(p packets.ControlPacket) {
	select {
	case k.packets <- p:
	default:
		_ = k.raw.Close()
	}
}

// write writes the packets of send until ended is closed. A failed write ends the connection.
func (k *connection) write(ended <-chan struct{}) {
	for {
		select {
		case p := <-k.packets:
			_ = k.raw.SetWriteDeadline(time.Now().Add(writeLimit)) // fails only if it is closed
			if p.Write(k.tls) != nil {
				_ = k.raw.Close()
			}
		case <-ended:
			return
		}
	}
}
