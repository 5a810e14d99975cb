package bench

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// hub is a cheap client of the hub protocol over MQTT and TLS. It sends exactly what a measurement
// asks for.
type hub struct {
	ID, Serial, Secret string
	// user and password are for the bare broker, which has no auth callout.
	user, password string

	broker string
	tls    *tls.Config

	conn   *tls.Conn
	reader *bufio.Reader
	// sending guards writes: the goroutine that keeps the connection alive writes too.
	sending sync.Mutex
	// next is the number of the next event.
	next uint64
	// acked, if not nil, is called for each ack while the hub is kept connected.
	acked func()
	// confirmed makes the hub send events with QoS 1. The broker's confirmation is their ack.
	confirmed bool
	// answer, if not nil, returns the packet that answers a request while the hub is kept
	// connected.
	answer func(request []byte) ([]byte, error)
}

// All event numbers have the same width, so that messages can be patched.
const (
	logName     = "bench"
	firstNumber = 1_000_000_001
)

const (
	dialTimeout = 20 * time.Second
	// keepAlive is the maximum of the hub protocol.
	keepAlive = 60 * time.Second
)

// newKey returns a new key of a hub and its certificate request.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return key, csr, err
}

// connect connects and subscribes to ack and request.
func (h *hub) connect() error {
	raw, err := net.DialTimeout("tcp", h.broker, dialTimeout)
	if err != nil {
		return err
	}
	h.conn = tls.Client(raw, h.tls)
	h.reader = bufio.NewReaderSize(h.conn, 1<<10)
	if err := h.sendHello(); err != nil {
		h.conn.Close()
		return fmt.Errorf("hub %s: connect: %w", h.ID, err)
	}
	return nil
}

func (h *hub) sendHello() error {
	h.conn.SetDeadline(time.Now().Add(dialTimeout))
	defer h.conn.SetDeadline(time.Time{})
	flags := byte(0x02) // clean session
	payload := mqttString(nil, h.ID)
	if h.user != "" {
		flags |= 0xc0
		payload = mqttString(mqttString(payload, h.user), h.password)
	}
	variable := append(mqttString(nil, "MQTT"), 4, flags, 0, byte(keepAlive/time.Second))
	if err := h.send(mqttPacket(mqttConnect, append(variable, payload...))); err != nil {
		return err
	}
	if kind, body, err := h.receive(); err != nil || kind != mqttConnack || len(body) != 2 ||
		body[1] != 0 {
		return fmt.Errorf("CONNACK: packet %x %x: %w", kind, body, err)
	}
	subscribe := []byte{0, 1}
	for _, topic := range []string{"ack", "request"} {
		subscribe = append(mqttString(subscribe, "hub/"+h.ID+"/"+topic), 0)
	}
	if err := h.send(mqttPacket(mqttSubscribe, subscribe)); err != nil {
		return err
	}
	for {
		kind, body, err := h.receive()
		switch {
		case err == nil && kind == mqttPublished:
			// A request may come before the SUBACK. The hub is still connecting, and lets it be.
		case err != nil || kind != mqttSuback || bytes.Contains(body[2:], []byte{0x80}):
			return fmt.Errorf("SUBACK: packet %x %x: %w", kind, body, err)
		default:
			return nil
		}
	}
}

// hello sends a hello and waits for its ack. The hub continues after the acknowledged event.
func (h *hub) hello() error {
	if h.next == 0 {
		h.next = firstNumber
	}
	text := fmt.Appendf(
		nil,
		`{"protocol":1,"log":%q,"oldest":%d,"newest":%d,"clock_trusted":true,"firmware":{"version":"2.4.1"},"network":`+
			`{"type":"ethernet","interface":"eth0","ip_address":"10.0.4.7","ipv6_address":null,"mac_address":"02:00:00:00:00:01",`+
			`"ssid":null,"signal_dbm":null,"carrier":null,"radio":null,"metered":false}}`,
		logName,
		h.next,
		h.next-1,
	)
	if err := h.send(mqttPublish("hub/"+h.ID+"/hello", text)); err != nil {
		return err
	}
	through, err := h.ack()
	if err == nil && through != h.next-1 {
		err = fmt.Errorf("hub %s: got an ack through %d for a hello from %d", h.ID, through, h.next)
	}
	return err
}

// ack waits for the next ack, for at most 20 s.
func (h *hub) ack() (through uint64, err error) {
	h.conn.SetReadDeadline(time.Now().Add(dialTimeout))
	defer h.conn.SetReadDeadline(time.Time{})
	for {
		kind, body, err := h.receive()
		if err != nil {
			return 0, fmt.Errorf("hub %s: waiting for an ack: %w", h.ID, err)
		}
		if kind == mqttPuback {
			return h.next - 1, nil
		}
		if kind != mqttPublished {
			continue
		}
		_, digits, ok := bytes.Cut(body, []byte(`"through":`))
		if !ok {
			continue // a request
		}
		end := bytes.IndexAny(digits, ",}")
		if end < 0 {
			return 0, fmt.Errorf("hub %s: malformed ack %q", h.ID, body)
		}
		return strconv.ParseUint(string(digits[:end]), 10, 64)
	}
}

// stay keeps the connection alive until stop is closed, and ends it.
func (h *hub) stay(stop <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() {
		for {
			kind, body, err := h.receive()
			if err == nil && kind == mqttPublished {
				err = h.handle(body)
			}
			if kind == mqttPuback && h.acked != nil {
				h.acked()
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	ping := time.NewTicker(keepAlive / 2)
	defer ping.Stop()
	for {
		select {
		case <-ping.C:
			if err := h.send([]byte{mqttPing, 0}); err != nil {
				return err
			}
		case err := <-ended:
			return fmt.Errorf("hub %s: connection lost: %w", h.ID, err)
		case <-stop:
			h.disconnect()
			<-ended
			return nil
		}
	}
}

// handle handles a PUBLISH packet of the cloud, an ack or a request.
func (h *hub) handle(message []byte) error {
	length := 2 + int(binary.BigEndian.Uint16(message))
	topic, payload := message[2:length], message[length:]
	switch {
	case !bytes.HasSuffix(topic, []byte("/request")):
		if h.acked != nil {
			h.acked()
		}
	case h.answer != nil:
		packet, err := h.answer(payload)
		if err != nil {
			return err
		}
		return h.send(packet)
	}
	return nil
}

func (h *hub) disconnect() {
	h.send([]byte{mqttDisconnect, 0})
	h.conn.Close()
}

func (h *hub) send(packet []byte) error {
	h.sending.Lock()
	defer h.sending.Unlock()
	_, err := h.conn.Write(packet)
	return err
}

// The first bytes of MQTT 3.1.1 packets.
const (
	mqttConnect    = 0x10
	mqttConnack    = 0x20
	mqttPublished  = 0x30
	mqttPuback     = 0x40
	mqttSubscribe  = 0x82
	mqttSuback     = 0x90
	mqttPing       = 0xc0
	mqttDisconnect = 0xe0
)

// receive reads one packet.
func (h *hub) receive() (kind byte, body []byte, err error) {
	kind, err = h.reader.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	length, shift := 0, 0
	for {
		b, err := h.reader.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift += 7; shift > 21 {
			return 0, nil, errors.New("MQTT: malformed length")
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(h.reader, body)
	return kind & 0xf0, body, err
}

func mqttString(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

func mqttPacket(first byte, body []byte) []byte {
	packet := []byte{first}
	for n := len(body); ; {
		b := byte(n & 0x7f)
		if n >>= 7; n > 0 {
			packet = append(packet, b|0x80)
			continue
		}
		return append(append(packet, b), body...)
	}
}

// mqttPublishConfirmed is mqttPublish with QoS 1. All messages have the same packet id.
func mqttPublishConfirmed(topic string, payload []byte) []byte {
	head := append(mqttString(nil, topic), 0, 1)
	return mqttPacket(mqttPublished|2, append(head, payload...))
}

func mqttPublish(topic string, payload []byte) []byte {
	return mqttPacket(mqttPublished, append(mqttString(nil, topic), payload...))
}
