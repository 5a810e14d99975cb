package attention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// TestRandomHistories drives random hubs over hours, with crashes that lose the answers of the
// queue, and checks what holds for every member: never more mails an hour than allowed, nothing
// urgent that waits for longer than the pause of its group, no mail twice, no end before its begin,
// and begins and ends in turn for each condition.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				h.crash(t)
			case 1:
				h.record.Interrupt()
			case 2:
				h.doubt = !h.doubt
			default:
				device := rapid.IntRange(0, len(h.state.Devices)-1).Draw(t, "device")
				value := rapid.SampledFrom([]string{"true", "false"}).Draw(t, "value")
				channel := &h.state.Devices[device].Channels[0]
				if string(channel.Value) != value {
					channel.ChangedAt = h.at
				}
				channel.Value, channel.ObservedAt = []byte(value), h.at
			}
			h.observe(rapid.Bool().Draw(t, "queue"))
			h.at = h.at.Add(time.Duration(rapid.Int64Range(1, int64(5*time.Minute)).Draw(t, "pause")))
		}
		h.check(t)
	})
}

type history struct {
	*world
	// sent are the mails that were queued, by id.
	sent map[string]attention.Mail
}

func newHistory() *history {
	h := &history{newWorld(), map[string]attention.Mail{}}
	h.org.Members = []domain.OrgMember{{ID: "ann", Role: domain.RoleOwner}}
	for device := range int64(12) {
		h.state.Devices = append(h.state.Devices, attention.DeviceState{
			ID: device, Available: true,
			Channels: []attention.ChannelState{{Key: "leak", Value: []byte("false")}},
		})
	}
	return h
}

// observe observes, and queues the mails; without queue their queueing fails after the queue has
// taken them.
func (h *history) observe(queue bool) {
	state := h.state
	state.Devices = slices.Clone(h.state.Devices)
	hubs := map[domain.HubID]attention.ObservedHub{hubID: {State: state, Certain: !h.doubt}}
	for _, change := range h.record.Observe(h.at, hubs) {
		h.record.Apply(h.at, change, h.org, rules)
	}
	h.record.Decide(h.at, h.org, rules)
	for _, m := range h.record.Outgoing() {
		h.sent[m.ID] = m
		if queue {
			h.record.Queued(m.ID)
		}
	}
}

func (h *history) check(t *rapid.T) {
	mails := make([]attention.Mail, 0, len(h.sent))
	for _, m := range h.sent {
		mails = append(mails, m)
	}
	slices.SortFunc(mails, func(a, b attention.Mail) int {
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		return int(a.Notices[0].Number) - int(b.Notices[0].Number)
	})
	var others []attention.Mail
	for _, m := range mails {
		if !m.Urgent {
			others = append(others, m)
		}
	}
	for i, m := range others {
		if n := i - rules.MailsPerHour; n >= 0 && m.At.Sub(others[n].At) < time.Hour {
			t.Fatalf("%d mails within %s", rules.MailsPerHour+1, m.At.Sub(others[n].At))
		}
	}
	// events are the begins and ends of each cause, and of each condition, in the order of mails.
	causes := map[string]string{}
	seen := map[uint64]bool{}
	for _, m := range mails {
		for _, n := range m.Notices {
			// 5 minutes is the longest pause of a group, and the one between two steps.
			if late := m.At.Sub(n.Since); n.Ended.IsZero() && late > 10*time.Minute {
				t.Fatalf("a leak was mailed %s late", late)
			}
			if seen[n.Number] {
				t.Fatalf("notice %d is in two mails", n.Number)
			}
			seen[n.Number] = true
			kind := "B"
			if !n.Ended.IsZero() {
				kind = "E"
			}
			causes[n.Cause] += kind
		}
	}
	for cause, events := range causes {
		if events != "B" && events != "BE" {
			t.Fatalf("cause %s was mailed as %q in %s", cause, events, strings.Join(h.list(mails), ", "))
		}
	}
}

func (*history) list(mails []attention.Mail) (all []string) {
	for _, m := range mails {
		all = append(all, fmt.Sprint(m.At.Format(time.TimeOnly), " ", describe(m)))
	}
	return all
}
