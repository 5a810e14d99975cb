package portal

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"hubcloud/domain"
)

// door is a hub with one lock, device 1, that had reported that it is locked.
type door struct {
	r   *testLive
	hub domain.HubID
	// channel is the lock after the command, before the device reports. then is what the hub's
	// answers show later, nil for no change, and events are the reports in its log.
	then   *domain.Channel
	events []string
	// early reports that the events are stored, and then applies, when the command is answered.
	early bool

	mu      sync.Mutex
	channel domain.Channel
	gets    int
}

const (
	reportedAt = "2026-01-02T03:00:00.000000Z"
	askedAt    = "2026-01-02T03:04:05.000000Z"
	laterAt    = "2026-01-02T03:04:06.000000Z"
)

// lock returns a lock for which the command to lock is under way or over.
func lock(status domain.ChannelStatus, value, observedAt string) *domain.Channel {
	desiredAt := askedAt
	return &domain.Channel{
		Key: "lock", Kind: "lock", Available: true, Writable: true, Status: status,
		Value: json.RawMessage(value), ObservedAt: &observedAt,
		Desired: json.RawMessage("true"), DesiredAt: &desiredAt,
	}
}

// Send accepts the command.
func (d *door) Send(
	context.Context, domain.Origin, domain.Command,
) (domain.SentCommand, error) {
	answer := *lock(domain.ChannelPending, "true", reportedAt)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.channel = answer
	d.r.append(d.hub, "channel.desired", 1, locked)
	if d.early {
		d.report()
	}
	return domain.SentCommand{Channel: answer}, nil
}

func (d *door) SendAll(
	ctx context.Context, o domain.Origin, all []domain.Command,
) (results []domain.CommandResult) {
	for _, c := range all {
		sent, err := d.Send(ctx, o, c)
		results = append(results, domain.CommandResult{SentCommand: sent, Err: err})
	}
	return results
}

// report stores what the device reports. The caller must hold d.mu.
func (d *door) report() {
	for _, event := range d.events {
		d.r.append(d.hub, "channel.observed", 1, event)
	}
	if d.then != nil {
		d.channel = *d.then
	}
	d.events, d.then = nil, nil
}

// get answers the first request before the device has reported.
func (d *door) get() (domain.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gets++; d.gets == 2 {
		d.report()
	}
	return domain.Device{ID: 1, Channels: []domain.Channel{d.channel}}, nil
}

// "Lock all" said "Done" for a door that was locked before the command and open after it: the value
// from before was compared with the one that was asked for. Only a report after the command counts.
func TestLockAll(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	synchronized, diverged := domain.ChannelSynchronized, domain.ChannelDiverged
	for name, tt := range map[string]struct {
		door  *door
		want  commandOutcome
		value string
	}{
		"locks": {
			&door{then: lock(synchronized, "true", laterAt), events: []string{locked}},
			outcomeDone, "locked",
		},
		"jams": {
			&door{then: lock(diverged, "false", laterAt), events: []string{unlocked, jam}},
			outcomeJammed, "unlocked",
		},
		"jams, and the log is late": {
			&door{then: lock(diverged, "false", laterAt)}, outcomeNotDone, "unlocked",
		},
		"was locked, and the hub sends no event for it": {
			&door{then: lock(synchronized, "true", laterAt)}, outcomeDone, "locked",
		},
		"reports before the hub answers": {
			&door{
				then: lock(synchronized, "true", reportedAt), events: []string{locked}, early: true,
			},
			outcomeDone, "locked",
		},
		"has reported nothing, and the hub takes the old value for the outcome": {
			&door{then: lock(synchronized, "true", reportedAt), early: true},
			outcomePending, "locked",
		},
		"reports nothing": {&door{}, outcomePending, "locked"},
		"is given up": {
			&door{then: lock(domain.ChannelFailed, "true", reportedAt)}, outcomeFailed, "locked",
		},
		"reports the outcome of an earlier command": {
			&door{events: []string{locked}}, outcomePending, "locked",
		},
		"is open, and the hub still waits": {
			&door{events: []string{unlocked}}, outcomeNotDone, "unlocked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.door
			d.r, d.hub = r, r.newHub()
			r.answer(d.hub, d.get)
			r.append(d.hub, "channel.observed", 1, locked) // before the command
			results := r.live.sendAll(t.Context(), d, domain.Origin{}, []groupSend{{
				Target: target{Hub: d.hub, DeviceID: 1},
				Command: domain.Command{
					HubID: d.hub, DeviceID: 1, Key: "lock", Value: json.RawMessage("true"),
				},
			}})
			if got := results[0]; got.Err != nil || got.Outcome != tt.want || got.Value != tt.value {
				t.Errorf("got %+v, want the outcome %q and the value %q", got, tt.want, tt.value)
			}
		})
	}
}

// The list of an action shows what each device has reported, and that a command is under way.
func TestTargetsShowTheirState(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	channel := *lock(domain.ChannelPending, "false", reportedAt)
	r.devices = []domain.Device{
		{ID: 1, Name: "Front door", Channels: []domain.Channel{channel}},
		{ID: 2, Name: "Back door", Channels: []domain.Channel{channel}},
	}
	r.errs[2] = domain.Errorf(domain.CodeHubError, "no values")
	found, err := r.live.findTargets(t.Context(), "org", []domain.HubID{hubA}, "lock", true)
	if err != nil || len(found.Targets) != 2 {
		t.Fatalf("got %+v, %v, want two targets", found, err)
	}
	if got := found.Targets[0]; got.State != "unlocked" || got.Pending != "Locking…" {
		t.Errorf("got the state %q, pending %q, want unlocked, Locking…", got.State, got.Pending)
	}
	if got := found.Targets[1]; got.State != "" || !got.Available {
		t.Errorf("got the state %q, want none of a device whose values the hub does not tell", got.State)
	}
}
