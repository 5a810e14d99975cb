package broker

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestSessionStreams checks that sessionStreams are those that a server creates itself when the
// first MQTT client connects, as a later version might create others.
func TestSessionStreams(t *testing.T) {
	t.Parallel()
	options := &server.Options{
		ServerName: "mqtt", Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(),
		MQTT: server.MQTTOpts{Host: "127.0.0.1", Port: -1},
	}
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	client, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", options.MQTT.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// CONNECT: MQTT 3.1.1, a clean session, a keep-alive of 60 s, the client id "x".
	connect := []byte("\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x")
	if _, err := client.Write(connect); err != nil {
		t.Fatal(err)
	}
	connack := make([]byte, 4)
	if _, err := io.ReadFull(client, connack); err != nil || connack[3] != 0 {
		t.Fatalf("CONNACK: %x, %v", connack, err)
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range sessionStreams {
		// The server creates a stream that exists again only if it is the same.
		config.Storage = jetstream.FileStorage
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Errorf("stream %s: %v", config.Name, err)
		}
	}
	names := 0
	for range js.StreamNames(t.Context()).Name() {
		names++
	}
	if want := len(sessionStreams) + 1; names != want { // and that of retained messages
		t.Errorf("there are %d streams, want the server's own %d", names, want)
	}
}
