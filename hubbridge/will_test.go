package hubbridge_test

import (
	"crypto/tls"
	"net"
	"net/url"
	"testing"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/streams/streamstest"
)

// TestWill holds what the hub protocol says of wills, which hubs must not set: the broker publishes
// one when the connection breaks, as if the hub had sent it, and the hub is offline in any case. A
// will to a foreign topic is dropped, as package identity tests.
func TestWill(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	const event = `{"log":"a","events":[{"seq":1,"type":"channel.observed","device_id":1,` +
		`"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"value":1}}]}`
	reporting, greeting := i.hub(), i.hub()
	breakConnection := func(h *hub, topic, will string) {
		t.Helper()
		h.adopt()
		var conn net.Conn
		client := mqtt.NewClient(i.ClientOptions(h.id, h.tls).
			SetBinaryWill(h.topic(topic), []byte(will), 1, false).
			SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
				var err error
				conn, err = tls.Dial("tcp", i.MQTTAddr, h.tls)
				return conn, err
			}))
		h.must(client.Connect())
		t.Cleanup(func() { client.Disconnect(0) })
		h.must(client.Subscribe(h.topic("ack"), 0, func(_ mqtt.Client, m mqtt.Message) {
			h.acks <- string(m.Payload())
		}))
		h.must(client.Publish(h.topic("hello"), 0, false, hello))
		h.wantAck(`{"log":"a","through":0}`)
		streamstest.Must(t, conn.(*tls.Conn).NetConn().Close())
	}
	breakConnection(reporting, "events", event)
	breakConnection(greeting, "hello", hello)
	// The broker may report the end of the connection before the will arrives.
	reporting.eventuallyLogged(
		"connected 1 disconnected:client_closed", "connected disconnected:client_closed 1",
	)
	greeting.eventuallyLogged("connected disconnected:client_closed")
	reporting.eventuallyOnline(false)
	greeting.eventuallyOnline(false)
}
