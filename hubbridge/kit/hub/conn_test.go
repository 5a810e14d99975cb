package hub

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"hubcloud/streams/streamstest"
)

// A request may arrive before the SUBACK (MQTT 3.1.1 section 3.8.4). The hub must connect, and must
// not lose it.
func TestRequestBeforeSuback(t *testing.T) {
	t.Parallel()
	hub, broker := net.Pipe()
	defer hub.Close()
	defer broker.Close()
	go func() {
		if _, err := packets.ReadPacket(broker); err != nil {
			t.Error(err)
		}
		if err := packets.NewControlPacket(packets.Connack).Write(broker); err != nil {
			t.Error(err)
		}
		if _, err := packets.ReadPacket(broker); err != nil {
			t.Error(err)
		}
		request := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		request.TopicName, request.Payload = "hub/one/request", []byte("early")
		suback := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
		suback.ReturnCodes = []byte{0, 0}
		late := request.Copy()
		late.TopicName, late.Payload = request.TopicName, []byte("late")
		for _, p := range []packets.ControlPacket{request, suback, late} {
			if err := p.Write(broker); err != nil {
				t.Error(err)
			}
		}
	}()
	c := &conn{conn: hub, reader: bufio.NewReader(hub), prefix: "hub/one/"}
	streamstest.Must(t, c.handshake("one", time.Minute))
	for _, want := range []string{"early", "late"} {
		suffix, payload, err := c.read()
		if err != nil || suffix != "request" || string(payload) != want {
			t.Errorf("read: %q %q %v, want the request %q", suffix, payload, err, want)
		}
	}
}
