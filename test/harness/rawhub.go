package harness

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/test/protocol"
)

// RawHub speaks the hub protocol message by message. It keeps no log and resends nothing by itself.
type RawHub struct {
	t      testing.TB
	ID     string
	Serial string
	Secret string

	url    string
	cert   tls.Certificate
	pool   *x509.CertPool
	broker string

	client mqtt.Client
	answer func(Request) Response
	// check validates the messages of the cloud, checkOwn of the hub.
	check, checkOwn func(topic string, payload []byte)
	// Acks receives every ack. Requests receives every request, unless OnRequest is set. Neither
	// gets the requests with which the cloud keeps the state of the devices: the hub answers those
	// as a hub without devices.
	Acks     chan Ack
	Requests chan Request
	// Lost is closed when the connection has ended.
	Lost chan struct{}
}

// Ack is an ack message of the cloud.
type Ack struct {
	Log     string `json:"log"`
	Through uint64 `json:"through"`
}

// Request is a request message of the cloud.
type Request struct {
	ID        string          `json:"id"`
	Token     string          `json:"token"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	TimeoutMS int64           `json:"timeout_ms"`
}

// Response is the hub's answer to a request. It may violate the protocol.
type Response struct {
	// Result is the result. A non-nil Error is sent instead.
	Result any
	Error  *LinkError
	// Raw, if not nil, is the whole message. Silent sends no answer.
	Raw    []byte
	Silent bool
}

// LinkError is the error of a response.
type LinkError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// NewRawHub registers a hub with the service.
func NewRawHub(t testing.TB, s *Service) *RawHub {
	t.Helper()
	return s.For(t).Hub().Raw(t, s.Public())
}

// Raw returns a RawHub with this identity. It has not enrolled yet.
func (m FactoryHub) Raw(t testing.TB, public string) *RawHub {
	check := CheckedMessages(t)
	return &RawHub{
		t: t, url: public, ID: m.HubID, Serial: m.Serial, Secret: m.Secret, check: check,
		checkOwn: check,
	}
}

// BreaksProtocol states that the hub breaks the protocol on purpose: its messages are not validated
// from now on. The cloud's messages are.
func (h *RawHub) BreaksProtocol() { h.checkOwn = Unchecked }

// Enroll gets a certificate.
func (h *RawHub) Enroll() {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(h.t, err)
	status, body := h.EnrollWith(key, h.Serial, h.Secret)
	if status != http.StatusCreated {
		h.t.Fatalf("enrolment: got %d %s, want 201", status, body)
	}
	var answer struct{ Certificate, CA, Broker string }
	Must(h.t, json.Unmarshal(body, &answer))
	block, _ := pem.Decode([]byte(answer.Certificate))
	h.cert = tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
	h.pool = x509.NewCertPool()
	if !h.pool.AppendCertsFromPEM([]byte(answer.CA)) {
		h.t.Fatal("enrolment: got no CA certificate")
	}
	h.broker = strings.TrimPrefix(answer.Broker, "mqtts://")
}

// Through makes the hub connect to the broker at address (host:port) instead of the address from
// its enrolment.
func (h *RawHub) Through(address string) { h.broker = address }

// EnrollWith requests a certificate with the given serial and secret and returns status and body of
// the answer.
func (h *RawHub) EnrollWith(key *ecdsa.PrivateKey, serial, secret string) (int, []byte) {
	h.t.Helper()
	request, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "whatever"}}, key,
	)
	Must(h.t, err)
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	body, err := json.Marshal(
		map[string]string{"serial": serial, "secret": secret, "csr": string(csr)},
	)
	Must(h.t, err)
	for {
		response, answer := h.postCertificate(body)
		// Enrolment is rate limited by IP address, which all hubs of a test share.
		if response.StatusCode != http.StatusTooManyRequests {
			return response.StatusCode, answer
		}
		if err := AwaitRetryAfter(response.Header); err != nil {
			h.t.Fatalf("certificate for %s: 429: %v", h.Serial, err)
		}
	}
}

func (h *RawHub) postCertificate(body []byte) (*http.Response, []byte) {
	h.t.Helper()
	client := http.Client{Transport: Checked(h.t, http.DefaultTransport)}
	response, err := client.Post(
		h.url+"/link/v1/certificates", "application/json", bytes.NewReader(body),
	)
	Must(h.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	Must(h.t, err)
	if err := protocol.CheckEnrolment(response.StatusCode, answer); err != nil {
		h.t.Errorf("answer %d to a certificate request: %v", response.StatusCode, err)
	}
	return response, answer
}

// Connect connects and subscribes. It fails the test when the broker rejects the connection.
func (h *RawHub) Connect() {
	h.t.Helper()
	if err := h.TryConnect(h.ID); err != nil {
		h.t.Fatalf("hub %s: connect: %v", h.ID, err)
	}
}

// GoOnline connects, sends hello with an empty log and waits for its ack.
func (h *RawHub) GoOnline() {
	h.t.Helper()
	h.Connect()
	h.Hello("log-1", 1, 0)
	h.WaitAck("log-1", 0)
}

// TryConnect connects with the given client id and subscribes.
func (h *RawHub) TryConnect(clientID string) error {
	lost := make(chan struct{})
	acks, requests := make(chan Ack, 4096), make(chan Request, 64)
	options := mqtt.NewClientOptions().
		AddBroker("ssl://" + h.broker).
		SetClientID(clientID).
		SetCleanSession(true).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetKeepAlive(30 * time.Second).
		SetConnectTimeout(10 * time.Second).
		SetProtocolVersion(4).
		SetOrderMatters(true).
		SetTLSConfig(&tls.Config{
			RootCAs: h.pool, Certificates: []tls.Certificate{h.cert}, MinVersion: tls.VersionTLS12,
		}).
		SetConnectionLostHandler(func(mqtt.Client, error) { close(lost) })
	client := mqtt.NewClient(options)
	if token := client.Connect(); !token.WaitTimeout(time.Minute) || token.Error() != nil {
		return fmt.Errorf("connect: %w", token.Error())
	}
	subscribe := func(topic string, handle mqtt.MessageHandler) error {
		token := client.Subscribe(topic, 0, handle)
		if !token.WaitTimeout(time.Minute) {
			return fmt.Errorf("subscribe %s: no answer", topic)
		}
		return token.Error()
	}
	err := subscribe("hub/"+clientID+"/ack", func(_ mqtt.Client, m mqtt.Message) {
		h.check(m.Topic(), m.Payload())
		var ack Ack
		if json.Unmarshal(m.Payload(), &ack) == nil {
			acks <- ack
		}
	})
	if err == nil {
		err = subscribe("hub/"+clientID+"/request", func(_ mqtt.Client, m mqtt.Message) {
			h.check(m.Topic(), m.Payload())
			var request Request
			if json.Unmarshal(m.Payload(), &request) != nil {
				return
			}
			if strings.HasPrefix(request.ID, stateRequests) {
				go h.send(client, request, Response{Result: map[string]any{"devices": []any{}}})
				return
			}
			if h.answer == nil {
				requests <- request
				return
			}
			go h.respond(client, request) // the protocol allows concurrent requests
		})
	}
	if err != nil {
		client.Disconnect(0)
		return err
	}
	h.client, h.Acks, h.Requests, h.Lost = client, acks, requests, lost
	h.t.Cleanup(func() { client.Disconnect(0) })
	return nil
}

// Disconnect ends the connection with a DISCONNECT packet.
func (h *RawHub) Disconnect() { h.client.Disconnect(5_000) }

// Publish sends a payload to a topic.
func (h *RawHub) Publish(topic string, payload []byte) {
	h.t.Helper()
	h.checkOwn(topic, payload)
	if token := h.client.Publish(topic, 0, false, payload); !token.WaitTimeout(time.Minute) {
		h.t.Fatalf("publish to %s: not sent", topic)
	}
}

// PublishQoS2 sends a payload to a topic with QoS 2, which ends the connection.
func (h *RawHub) PublishQoS2(topic string, payload []byte) {
	h.client.Publish(topic, 2, false, payload)
}

// Send publishes v as JSON to hub/<id>/<topic>.
func (h *RawHub) Send(topic string, v any) {
	h.t.Helper()
	payload, err := json.Marshal(v)
	Must(h.t, err)
	h.Publish("hub/"+h.ID+"/"+topic, payload)
}

// OnRequest makes the hub answer requests from its next connection on.
func (h *RawHub) OnRequest(answer func(Request) Response) { h.answer = answer }

// stateRequests begins the ids of the requests with which the cloud keeps the state of the devices.
const stateRequests = "state-"

// respond answers a request.
func (h *RawHub) respond(client mqtt.Client, request Request) {
	h.send(client, request, h.answer(request))
}

// send sends the response to a request.
func (h *RawHub) send(client mqtt.Client, request Request, response Response) {
	if response.Silent {
		return
	}
	payload := response.Raw
	if payload == nil {
		message := map[string]any{"id": request.ID}
		if message["result"] = response.Result; response.Error != nil {
			delete(message, "result")
			message["error"] = response.Error
		}
		var err error
		if payload, err = json.Marshal(message); err != nil {
			h.t.Errorf("response to %s: %v", request.Method, err)
			return
		}
	}
	h.checkOwn("hub/"+h.ID+"/response/"+request.Token, payload)
	client.Publish("hub/"+h.ID+"/response/"+request.Token, 0, false, payload).
		WaitTimeout(time.Minute)
}

// Hello sends a hello message.
func (h *RawHub) Hello(log string, oldest, newest uint64) {
	h.t.Helper()
	h.Send("hello", map[string]any{
		"protocol": 1, "log": log, "oldest": oldest, "newest": newest, "clock_trusted": true,
		"firmware": map[string]any{"version": "1.0.0"},
		"network":  map[string]any{"type": "ethernet", "interface": "eth0", "metered": false},
	})
}

// EventsFrom sends one message with the Numbered events first to last.
func (h *RawHub) EventsFrom(log string, first, last uint64) {
	h.t.Helper()
	var events []map[string]any
	for seq := first; seq <= last; seq++ {
		events = append(events, Numbered(seq))
	}
	h.Send("events", map[string]any{"log": log, "events": events})
}

// Numbered returns a well-formed event whose value is its number.
func Numbered(seq uint64) map[string]any {
	return map[string]any{
		"seq": seq, "type": "channel.observed", "device_id": 1,
		"time": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "clock_trusted": true,
		"data": map[string]any{"key": "temperature", "endpoint": 0, "value": seq},
	}
}

// WaitAck waits for an ack of the log through at least the given number.
func (h *RawHub) WaitAck(log string, through uint64) Ack {
	h.t.Helper()
	deadline := time.After(patience)
	var last Ack
	for {
		select {
		case ack := <-h.Acks:
			last = ack
			if ack.Log == log && ack.Through >= through {
				return ack
			}
		case <-h.Lost:
			h.t.Fatalf(
				"hub %s: connection lost while waiting for an ack of %s through %d; last was %+v",
				h.ID, log, through, last,
			)
		case <-deadline:
			h.t.Fatalf(
				"hub %s: no ack of %s through %d within %s; last was %+v", h.ID, log, through,
				patience, last,
			)
		}
	}
}

// DecodeParams decodes the request's params. Absent fields keep their values.
func (r Request) DecodeParams(params any) {
	_ = json.Unmarshal(r.Params, params)
}
