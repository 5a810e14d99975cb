package hubbridge_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/streamstest"
)

// channel returns the hub's current state of a channel.
func (h *wholeHub) channel(device int64, key string) domain.Channel {
	h.i.t.Helper()
	d, err := h.devices.Get(h.i.t.Context(), h.id, device)
	if err != nil {
		h.i.t.Fatal(err)
	}
	for _, c := range d.Channels {
		if c.Key == key {
			return c
		}
	}
	h.i.t.Fatalf("device %d has no channel %s", device, key)
	return domain.Channel{}
}

// desired counts the channel.desired events in the hub's log: each is a command that was run.
func (h *wholeHub) desired() (n int) {
	h.i.t.Helper()
	for _, e := range h.events() {
		if e == "channel.desired" {
			n++
		}
	}
	return n
}

// TestCommandsToAWholeHub sends commands to a virtual hub, over real MQTT.
func TestCommandsToAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(
		time.Second, func(cfg *virtualhub.Config) { cfg.GiveUp = 200 * time.Millisecond },
	)

	channel, err := h.send(frontDoor, "lock", "false", "k1")
	if err != nil || channel.Status != domain.ChannelPending || string(channel.Value) != "true" ||
		string(channel.Desired) != "false" {
		t.Fatalf("%+v, %v", channel, err)
	}
	streamstest.Eventually(t, "it is unlocked", func() bool {
		c := h.channel(frontDoor, "lock")
		return c.Status == domain.ChannelSynchronized && string(c.Value) == "false"
	})
	if again, err := h.send(frontDoor, "lock", "false", "k1"); err != nil ||
		*again.DesiredAt != *channel.DesiredAt ||
		again.Status != domain.ChannelPending {
		t.Errorf("%+v, first %+v, %v", again, channel, err)
	}
	for n, tc := range []struct {
		device         int64
		channel, value string
		code           domain.Code
	}{
		{99, "lock", "true", domain.CodeNotFound},
		{frontDoor, "switch", "true", domain.CodeNotFound},
		{switches, "switch", "true", domain.CodeNotFound}, // its endpoints are 1 and 2
		{thermostat, "heating_setpoint", "99", domain.CodeInvalidRequest},
		{thermostat, "mode", `"tropical"`, domain.CodeInvalidRequest},
		{shed, "lock", "true", domain.CodeCommandRefused},
	} {
		for range 2 {
			_, err := h.send(tc.device, tc.channel, tc.value, fmt.Sprint("refused", n))
			wantCode(t, fmt.Sprint(tc), err, tc.code)
		}
	}
	if n := h.desired(); n != 1 {
		t.Errorf("ran %d commands", n)
	}

	// Not remembered: the radio is down, then it is not.
	h.RadioDown(true)
	_, err = h.send(frontDoor, "lock", "true", "k2")
	wantCode(t, "the radio is down", err, domain.CodeHubUnavailable)
	h.RadioDown(false)
	if _, err := h.send(frontDoor, "lock", "true", "k2"); err != nil {
		t.Error(err)
	}
	// Late: the hub acts, and its answer comes when nobody listens any more.
	h.LateAnswers(1100 * time.Millisecond)
	_, err = h.send(thermostat, "heating_setpoint", "22.5", "k3")
	wantCode(t, "late", err, domain.CodeHubTimeout)
	h.LateAnswers(0)
	if channel, err := h.send(thermostat, "heating_setpoint", "22.5", "k3"); err != nil ||
		string(channel.Desired) != "22.5" {
		t.Errorf("%+v, %v", channel, err)
	}
	// Offline: at once, and the key works later.
	h.Offline(true)
	h.online(false)
	_, err = h.send(thermostat, "mode", `"off"`, "k4")
	wantCode(t, "offline", err, domain.CodeHubOffline)
	if channel, err := h.send(frontDoor, "lock", "false", "k1"); err != nil ||
		channel.Status != domain.ChannelPending {
		t.Errorf("what is remembered: %+v, %v", channel, err)
	}
	h.Offline(false)
	h.online(true)
	if _, err := h.send(thermostat, "mode", `"off"`, "k4"); err != nil {
		t.Error(err)
	}
	streamstest.Eventually(t, "four are run", func() bool { return h.desired() == 4 })
}

// TestARaceToAWholeHub: 30 at once under one key, as the hub is restarted from what its disk has.
// It runs the command once, and all that are accepted hear the same.
func TestARaceToAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(time.Second, func(cfg *virtualhub.Config) { cfg.Dir = t.TempDir() })
	h.LateAnswers(300 * time.Millisecond)
	var group sync.WaitGroup
	answers := make([]string, 30)
	for n := range answers {
		group.Go(func() {
			deadline := time.Now().Add(time.Minute)
			for ; time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
				if channel, err := h.send(frontDoor, "lock", "false", "k"); err == nil {
					answers[n] = *channel.DesiredAt
					return
				}
			}
		})
	}
	streamstest.Eventually(t, "the hub has it", func() bool {
		d, _ := h.Device(frontDoor)
		return d.Channels[0].DesiredAt != nil
	})
	h.CutConnection() // the answer that it holds back is lost
	h.LateAnswers(0)
	group.Wait()
	for n, answer := range answers {
		if answer == "" || answer != answers[0] {
			t.Errorf("answer %d: %q, the first %q", n, answer, answers[0])
		}
	}
	streamstest.Eventually(t, "it is told", func() bool { return h.desired() > 0 })
	if n := h.desired(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}
