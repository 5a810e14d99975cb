package check_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// faults make a wrong hub of a virtual hub: they change what the hub sends and receives. The zero
// faults change nothing.
type faults struct {
	// config changes the configuration of the virtual hub.
	config func(*virtualhub.Config)
	// formerCertificate makes the hub connect with its first certificate for good.
	formerCertificate bool
	// trusting makes the hub trust every broker, and blind not see that it does not trust one.
	trusting, blind bool
	// connections is after how many connections the hub stays away; 0 for never.
	connections int
	// connect changes CONNECT.
	connect func(*packets.ConnectPacket)
	// up changes a packet of the hub, and down one to the hub. They return false to drop it. They
	// may send others with link.toCloud and link.toHub.
	up, down func(l *link, p packets.ControlPacket) bool
	// message and answer do the same with a published message, decoded and encoded again.
	message, answer func(l *link, m *message) bool
}

// message is a published message.
type message struct {
	// suffix is the topic without hub/<id>/.
	suffix string
	body   map[string]any
	// method is that of the request, in a response.
	method string
}

// events returns the events of an events message; nil for other messages.
func (m *message) events() (events []map[string]any) {
	list, _ := m.body["events"].([]any)
	for _, e := range list {
		object, _ := e.(map[string]any)
		events = append(events, object)
	}
	return events
}

// number returns a member that is a number.
func number(object map[string]any, name string) int64 {
	n, _ := object[name].(json.Number)
	value, _ := n.Int64()
	return value
}

// proxy stands between a virtual hub and a check and applies faults. It has an authority of its
// own, and enrols at the check when the hub enrols at it.
type proxy struct {
	t         *testing.T
	enrolURL  string
	faults    faults
	authority *identity.Authority
	// stranger is an authority that the hub does not trust.
	stranger *identity.Authority
	listener net.Listener

	mu       sync.Mutex
	upstream []tls.Certificate
	expires  time.Time
	roots    *x509.CertPool
	broker   string
	links    int
	// methods has the methods of requests by their ids.
	methods map[string]string
	// memory is for the faults.
	memory map[string]any
}

func startProxy(t *testing.T, enrolURL string, f faults) *proxy {
	t.Helper()
	p := &proxy{
		t: t, enrolURL: enrolURL, faults: f, methods: map[string]string{}, memory: map[string]any{},
	}
	var err error
	p.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.expires.IsZero() {
				return time.Now()
			}
			return p.expires.Add(-365 * 24 * time.Hour)
		},
	})
	streamstest.Must(t, err)
	p.stranger, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	})
	streamstest.Must(t, err)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var links sync.WaitGroup
	links.Go(func() {
		for {
			raw, err := p.listener.Accept()
			if err != nil {
				return
			}
			links.Go(func() { p.serve(ctx, raw) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = p.listener.Close()
		links.Wait()
	})
	return p
}

// RoundTrip is an enrolment of the hub.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	var request protocol.CertificateRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(request.CSR))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	own, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	request.CSR = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: own}))
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(
		p.enrolURL+"/link/v1/certificates", "application/json", bytes.NewReader(body),
	)
	if err != nil || response.StatusCode != http.StatusCreated {
		return response, err
	}
	defer response.Body.Close()
	var issued protocol.Certificate
	if err := json.NewDecoder(response.Body).Decode(&issued); err != nil {
		return nil, err
	}
	if body, err = p.reissue(&issued, key, csr); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// reissue keeps a certificate of the check and returns one of the proxy's for the hub.
func (p *proxy) reissue(
	issued *protocol.Certificate, key *ecdsa.PrivateKey, csr *x509.CertificateRequest,
) ([]byte, error) {
	block, _ := pem.Decode([]byte(issued.Certificate))
	expires, err := time.Parse(time.RFC3339Nano, issued.ExpiresAt)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.expires = expires
	p.upstream = append(
		p.upstream, tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key},
	)
	p.roots = x509.NewCertPool()
	p.roots.AppendCertsFromPEM([]byte(issued.CA))
	p.broker = strings.TrimPrefix(issued.Broker, "mqtts://")
	p.mu.Unlock()
	own, err := p.authority.IssueHub(domain.HubID(issued.HubID), csr.PublicKey)
	if err != nil {
		return nil, err
	}
	issued.Certificate, issued.CA = string(own.PEM), string(p.authority.CAPEM())
	issued.Broker = "mqtts://" + p.listener.Addr().String()
	return json.Marshal(issued)
}

// dial connects to the check.
func (p *proxy) dial(ctx context.Context) (*tls.Conn, error) {
	p.mu.Lock()
	dialer, broker := p.dialer()
	p.mu.Unlock()
	conn, err := dialer.DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

// dialer returns what dials the check, and its address. The caller holds the mutex.
func (p *proxy) dialer() (*tls.Dialer, string) {
	certificate := p.upstream[len(p.upstream)-1]
	if p.faults.formerCertificate {
		certificate = p.upstream[0]
	}
	return &tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 30 * time.Second},
		Config: &tls.Config{
			RootCAs: p.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: p.faults.trusting,
		},
	}, p.broker
}

// link is one connection of the hub.
type link struct {
	*proxy
	number     int
	hub, cloud net.Conn
	hubMu      sync.Mutex
	cloudMu    sync.Mutex
	// connected is the CONNECT of the link.
	connected *packets.ConnectPacket
}

func (p *proxy) serve(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	cloud, err := p.dial(ctx)
	config := p.authority.ServerTLS()
	if unverified := new(tls.CertificateVerificationError); errors.As(err, &unverified) {
		if p.faults.blind {
			return
		}
		config = p.stranger.ServerTLS() // the hub sees what the proxy has seen
	}
	hub := tls.Server(raw, config)
	if handshakeErr := hub.HandshakeContext(ctx); handshakeErr != nil || err != nil {
		if err == nil {
			_ = cloud.Close()
		}
		return
	}
	p.mu.Lock()
	p.links++
	number := p.links
	p.mu.Unlock()
	if p.faults.connections > 0 && number > p.faults.connections {
		_ = cloud.Close()
		return
	}
	l := &link{proxy: p, number: number, hub: hub, cloud: cloud}
	var down sync.WaitGroup
	down.Go(func() {
		l.pump(cloud, l.toHub, p.faults.down, p.faults.answer)
		_ = hub.NetConn().Close()
	})
	stopCloud := context.AfterFunc(ctx, func() { _ = cloud.Close() })
	defer stopCloud()
	l.pump(hub, l.toCloud, p.faults.up, p.faults.message)
	_ = cloud.NetConn().Close()
	down.Wait()
}

func (l *link) toHub(p packets.ControlPacket) {
	l.hubMu.Lock()
	defer l.hubMu.Unlock()
	_ = p.Write(l.hub) // the reader of a broken connection ends the link
}

func (l *link) toCloud(p packets.ControlPacket) {
	l.cloudMu.Lock()
	defer l.cloudMu.Unlock()
	_ = p.Write(l.cloud) // as above
}

// pump passes packets on until from ends.
func (l *link) pump(
	from io.Reader, to func(packets.ControlPacket),
	change func(*link, packets.ControlPacket) bool, changeMessage func(*link, *message) bool,
) {
	reader := bufio.NewReader(from)
	for {
		p, err := packets.ReadPacket(reader)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && l.t.Failed() {
				l.t.Logf("link %d: %v", l.number, err)
			}
			return
		}
		switch p := p.(type) {
		case *packets.ConnectPacket:
			l.connected = p
			if l.faults.connect != nil {
				l.faults.connect(p)
			}
		case *packets.PublishPacket:
			if !l.changePublish(p, changeMessage) {
				continue
			}
		}
		if change == nil || change(l, p) {
			to(p)
		}
	}
}

// changePublish applies change to a message and reports whether it is to be passed on.
func (l *link) changePublish(p *packets.PublishPacket, change func(*link, *message) bool) bool {
	parts := strings.SplitN(p.TopicName, "/", 3)
	m := message{suffix: parts[2]}
	decoder := json.NewDecoder(bytes.NewReader(p.Payload))
	decoder.UseNumber()
	if err := decoder.Decode(&m.body); err != nil {
		l.t.Errorf("message on %s: %v", p.TopicName, err)
		return true
	}
	id, _ := m.body["id"].(string)
	l.mu.Lock()
	defer l.mu.Unlock()
	if method, ok := m.body["method"].(string); ok {
		l.methods[id] = method
	}
	m.method = l.methods[id]
	if change == nil {
		return true
	}
	before, err := json.Marshal(m.body)
	if err != nil {
		l.t.Error(err)
	}
	if !change(l, &m) {
		return false
	}
	after, err := json.Marshal(m.body)
	if err != nil {
		l.t.Error(err)
	}
	if !bytes.Equal(before, after) {
		p.Payload = after
	}
	p.TopicName = parts[0] + "/" + parts[1] + "/" + m.suffix
	return true
}

// publish returns a message of the hub as a packet.
func (l *link) publish(suffix string, body any) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName = "hub/" + l.connected.ClientIdentifier + "/" + suffix
	payload, err := json.Marshal(body)
	if err != nil {
		l.t.Error(err)
	}
	p.Payload = payload
	return p
}
