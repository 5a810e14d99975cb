package bench

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/mailserver"
)

// fairnessSize is the load of the measurement.
type fairnessSize struct {
	// events are what the hub of the attacker reports, each of another channel, and mails how many
	// mails of others are measured meanwhile, and before, and after.
	events, mails int
}

const (
	// floodDevice is the number of channels of each device of the attacker, and floodMessage the
	// number of events of a message.
	floodDevice  = 100
	floodMessage = 100
	// floodAhead is how many events are sent before they are acknowledged.
	floodAhead = 1000
)

// measureFairness measures how long the mail about smoke takes in one organization while the hub of
// another one reports ever new channels. The limit is the time before the flood.
func measureFairness(b *bench) {
	n := size(b, fairnessSize{200_000, 8}, fairnessSize{2000, 1})
	mails := mailserver.Start(b, mailserver.Options{})
	s := startService(b, "--log-level", "warn", "--smtp-url", "smtp://"+mails.Address, "--rate", "50",
		"--burst", "100")
	measureAttacks(b, s)
	target := s.target(b)
	type innocent struct {
		owner string
		hub   *virtualhub.Hub
	}
	var innocents []innocent
	for i := range 3 * n.mails {
		tenant := harness.NewTenant(b, s.Service, fmt.Sprint("Mill ", i))
		innocents = append(innocents, innocent{tenant.Owner, target.VirtualHub(
			tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{
				{Kind: "smoke_alarm", Name: "Landing alarm"},
			}},
		)})
	}
	attacker := target.Online(s.Tenant)
	attacker.BreaksProtocol() // checking each message would take as long as its way
	smoke := func() (took []float64) {
		for _, one := range innocents[:n.mails] {
			begun := time.Now()
			if err := one.hub.Report(1, virtualhub.ChannelRef{Key: "smoke"}, true); err != nil {
				b.Fatal(err)
			}
			streamstest.Eventually(b, "a mail about smoke", func() bool {
				return len(mails.MailsTo(one.owner)) > 0
			})
			took = append(took, time.Since(begun).Seconds())
		}
		innocents = innocents[n.mails:]
		return took
	}
	before := smoke()
	flooding := make(chan struct{})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		flood(attacker, n.events, func() { close(flooding) })
	}()
	<-flooding
	during := smoke()
	<-flooded
	after := smoke()
	name := fmt.Sprintf("mail of an alarm, another hub reports %d channels", n.events)
	b.report.add(row{
		Measure: name + ", meanwhile", Unit: "s", Values: during, Limits: before, Aim: atMost(2),
	})
	b.report.add(row{
		Measure: name + ", afterwards", Unit: "s", Values: after, Limits: before, Aim: atMost(2),
	})
}

// flood reports that many channels, and calls begun once a part of them is acknowledged. It ends
// early if the connection does.
func flood(h *harness.RawHub, events int, begun func()) {
	acked := 0
	for sent := 0; acked < events; {
		if sent < events && sent < acked+floodAhead {
			message := map[string]any{"log": "log-1", "events": floodEvents(sent+1, floodMessage)}
			payload, _ := json.Marshal(message) // maps of texts and numbers
			h.Publish("hub/"+h.ID+"/events", payload)
			sent += floodMessage
			continue
		}
		select {
		case ack := <-h.Acks:
			if acked = int(ack.Through); begun != nil {
				begun()
				begun = nil
			}
		case <-h.Lost:
			acked = events
		}
	}
	if begun != nil {
		begun()
	}
}

// floodEvents returns events from a number on.
func floodEvents(first, count int) (events []map[string]any) {
	for seq := first; seq < first+count; seq++ {
		event := harness.Numbered(uint64(seq))
		event["device_id"] = 1 + seq/floodDevice
		event["data"] = map[string]any{"key": fmt.Sprint("channel_", seq), "endpoint": 0, "value": seq}
		events = append(events, event)
	}
	return events
}
