package hubbridge_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// channel returns the state of a channel, read from the hub.
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

// commandsRun returns how many commands the hub ran: the channel.desired events in its log.
func (h *wholeHub) commandsRun() (n int) {
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
		t.Fatalf("Send = %+v, %v, want pending", channel, err)
	}
	streamstest.Eventually(t, "the door is unlocked", func() bool {
		c := h.channel(frontDoor, "lock")
		return c.Status == domain.ChannelSynchronized && string(c.Value) == "false"
	})
	if again, err := h.send(frontDoor, "lock", "false", "k1"); err != nil ||
		*again.DesiredAt != *channel.DesiredAt ||
		again.Status != domain.ChannelPending {
		t.Errorf("Send again = %+v, %v, want %+v", again, err, channel)
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
			_, err := h.send(tc.device, tc.channel, tc.value, fmt.Sprint("rejected", n))
			wantCode(t, fmt.Sprintf("command %+v", tc), err, tc.code)
		}
	}
	if n := h.commandsRun(); n != 1 {
		t.Errorf("the hub ran %d commands, want 1", n)
	}

	// The answer hub_unavailable is not stored under the key: the next try runs.
	h.RadioDown(true)
	_, err = h.send(frontDoor, "lock", "true", "k2")
	wantCode(t, "command without the radio", err, domain.CodeHubUnavailable)
	h.RadioDown(false)
	if _, err := h.send(frontDoor, "lock", "true", "k2"); err != nil {
		t.Error(err)
	}
	// The hub runs the command, but responds after the timeout.
	h.LateAnswers(1100 * time.Millisecond)
	_, err = h.send(thermostat, "heating_setpoint", "22.5", "k3")
	wantCode(t, "late response", err, domain.CodeHubTimeout)
	h.LateAnswers(0)
	if channel, err := h.send(thermostat, "heating_setpoint", "22.5", "k3"); err != nil ||
		string(channel.Desired) != "22.5" {
		t.Errorf("Send again after a late response = %+v, %v, want 22.5", channel, err)
	}
	// The answer hub_offline is not stored under the key either.
	h.Offline(true)
	h.awaitOnline(false)
	_, err = h.send(thermostat, "mode", `"off"`, "k4")
	wantCode(t, "command to an offline hub", err, domain.CodeHubOffline)
	if channel, err := h.send(frontDoor, "lock", "false", "k1"); err != nil ||
		channel.Status != domain.ChannelPending {
		t.Errorf("Send again to an offline hub = %+v, %v, want the stored answer", channel, err)
	}
	h.Offline(false)
	h.awaitOnline(true)
	if _, err := h.send(thermostat, "mode", `"off"`, "k4"); err != nil {
		t.Error(err)
	}
	streamstest.Eventually(
		t, "the hub ran four commands", func() bool { return h.commandsRun() == 4 },
	)
}

// TestConcurrentDuplicatesToAWholeHub sends a command 30 times at once under one key, and cuts the
// hub's connection meanwhile. The hub must run the command once, and all senders must get the same
// answer.
func TestConcurrentDuplicatesToAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(time.Second, func(cfg *virtualhub.Config) { cfg.Dir = t.TempDir() })
	h.LateAnswers(300 * time.Millisecond)
	var group sync.WaitGroup
	answers := make([]string, 30)
	for n := range answers {
		group.Go(func() {
			streamstest.Poll(time.Minute, func() bool {
				channel, err := h.send(frontDoor, "lock", "false", "k")
				if err == nil {
					answers[n] = *channel.DesiredAt
				}
				return err == nil
			})
		})
	}
	streamstest.Eventually(t, "the hub has the command", func() bool {
		d, _ := h.Device(frontDoor)
		return !d.Channels[0].DesiredAt.IsZero()
	})
	h.CutConnection() // the late response is lost
	h.LateAnswers(0)
	group.Wait()
	for n, answer := range answers {
		if answer == "" || answer != answers[0] {
			t.Errorf("answer %d: got %q, want the first answer %q", n, answer, answers[0])
		}
	}
	streamstest.Eventually(
		t, "the command is in the event log", func() bool { return h.commandsRun() > 0 },
	)
	if n := h.commandsRun(); n != 1 {
		t.Errorf("the hub ran the command %d times, want once", n)
	}
}
