package identity_test

import (
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/streams"
)

// TestRestart stops everything and starts it on the same data: certificates are good as before, and sessions that hubs wanted kept are.
func TestRestart(t *testing.T) {
	t.Parallel()
	i := start(t)
	h, revoked := i.newHub(t, 1), i.newHub(t, 2)
	i.add(t, revoked.id)
	i.revoke(t, revoked.id)
	got := make(chan string, 10)
	options := func() *mqtt.ClientOptions {
		return h.options().SetCleanSession(false).SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { got <- string(m.Payload()) })
	}
	client, lost := mustConnect(t, options())
	for qos, topic := range []string{"ack", "request"} {
		if err := wait(t, client.Subscribe("hub/"+string(h.id)+"/"+topic, byte(qos), nil)); err != nil {
			t.Fatal(err)
		}
	}
	before, addr := i.broker.Credentials(), i.broker.MQTTAddr()
	i.down(t)
	mustEnd(t, "the broker stopped", lost)
	i.up(t, addr)

	after := i.broker.Credentials()
	if before.IssuerSeed != after.IssuerSeed || before.Users[streams.AccountCloud] != after.Users[streams.AccountCloud] {
		t.Error("the credentials changed")
	}
	mustBeRefused(t, "a certificate that was revoked before", revoked.options())
	mustConnect(t, options())
	for _, subject := range []string{streams.AckSubject(h.id), streams.RequestSubject(h.id)} {
		if err := i.conns.Shard(h.id).Publish(subject, []byte("after the restart")); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-got:
			if text != "after the restart" {
				t.Errorf("got %q", text)
			}
		case <-time.After(patient):
			t.Fatalf("nothing on %s: the session's subscription is gone", subject)
		}
	}
}

// TestHubsWaitForTheCallout: a hub that comes while the service starts is not refused, it waits.
func TestHubsWaitForTheCallout(t *testing.T) {
	t.Parallel()
	i := start(t)
	h := i.newHub(t, 1)
	i.stopCallout()
	connected := make(chan error, 1)
	client := mqtt.NewClient(h.options())
	go func() {
		token := client.Connect()
		token.Wait()
		connected <- token.Error()
	}()
	select {
	case err := <-connected:
		t.Fatalf("the hub did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	i.startCallout(t, i.directory)
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	client.Disconnect(0)
}

// BenchmarkReconnect is what follows a restart: hubs that all come back at once, over TLS, each to be looked up and let in.
func BenchmarkReconnect(b *testing.B) {
	const hubs = 400
	i := start(b)
	all := make([]*hub, hubs)
	for n := range all {
		all[n] = i.newHub(b, n)
	}
	for b.Loop() {
		var together sync.WaitGroup
		clients := make([]mqtt.Client, hubs)
		for n, h := range all {
			together.Go(func() {
				clients[n] = mqtt.NewClient(h.options())
				if token := clients[n].Connect(); token.Wait() && token.Error() != nil {
					b.Error(token.Error())
				}
			})
		}
		together.Wait()
		b.StopTimer()
		for _, client := range clients {
			client.Disconnect(0)
		}
		for _, h := range all {
			for i.listed(b, h.id) > 0 {
				time.Sleep(time.Millisecond)
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(hubs*float64(b.N)/b.Elapsed().Seconds(), "hubs/s")
}
