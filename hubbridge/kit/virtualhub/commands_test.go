package virtualhub_test

import (
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	t.Run("hub_unavailable is not remembered", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0005")
		for _, fault := range []func(bool){h.RadioDown, h.ClockUnknown} {
			fault(true)
			rejected(t, c.command(t, h, "again", frontDoor, "lock", false), "hub_unavailable")
			rejected(t, c.call(t, h, protocol.MethodPairingOpen, params{}), "hub_unavailable")
			rejected(t, c.call(t, h, protocol.MethodRemovalOpen, params{}), "hub_unavailable")
			fault(false)
		}
		result[channelAnswer](t, c.command(t, h, "again", frontDoor, "lock", false))
		h.RadioDown(true)
		if r := c.command(t, h, "again", frontDoor, "lock", false); r.Error != nil {
			t.Errorf("repeat of a command that ran: %+v, want its first answer", r.Error)
		}
		c.becomes(t, h, frontDoor, "lock", "failed", true)
	})

	t.Run("jammed, rejected, late", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0006")
		h.Jam(frontDoor)
		result[channelAnswer](t, c.command(t, h, "j", frontDoor, "lock", false))
		c.becomes(t, h, frontDoor, "lock", "diverged", true)
		h.Unjam(frontDoor)
		result[channelAnswer](t, c.command(t, h, "k", frontDoor, "lock", false))
		c.becomes(t, h, frontDoor, "lock", "synchronized", false)
		h.RejectCommands(true)
		rejected(t, c.command(t, h, "r", frontDoor, "lock", true), "command_refused")
		h.LateAnswers(300 * time.Millisecond)
		begun := time.Now()
		late := c.ask(t, h, protocol.MethodDevicesList, params{})
		<-late
		if took := time.Since(begun); took < 300*time.Millisecond {
			t.Errorf("response after %v, want at least 300ms", took)
		}
	})

	t.Run("the clock is unknown", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0007")
		h.ClockUnknown(true)
		c.acked(t, h, emit(t, h, 1))
		if e := c.of(h)[0]; e.ClockTrusted == nil || *e.ClockTrusted || !strings.HasPrefix(e.Time, "2000-01-01T") {
			t.Errorf("unexpected event %+v", e)
		}
		h.CutConnection()
		streamstest.Eventually(t, "hello with an untrusted clock", func() (untrusted bool) {
			c.with(h, func(r *remote) { untrusted = !*r.hellos[len(r.hellos)-1].ClockTrusted })
			return untrusted
		})
	})
}
