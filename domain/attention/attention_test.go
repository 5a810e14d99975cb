package attention_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

const hub = domain.HubID("hub-7k2m-q4xd-93ta")

var began = time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)

// one returns the kinds and severities of a device with that channel and a lock.
func one(channels ...attention.ChannelState) string {
	for i, c := range channels {
		if c.Key == attention.AlarmChannel && c.Standing == nil {
			channels[i].Standing = attention.Stand(nil, domain.StandingAlarm{
				Value: c.Value, ObservedAt: c.ObservedAt, Logged: c.Logged,
			})
		}
	}
	return kinds(attention.DeviceState{
		ID: 3, Name: "Landing", Room: "Hall", Available: true, Channels: channels,
	})
}

func kinds(devices ...attention.DeviceState) string {
	var all []string
	for _, c := range attention.Of(attention.HubState{
		ID: hub, Status: domain.HubOnline, Known: began, Devices: devices,
	}) {
		all = append(all, fmt.Sprintf("%s %s", c.Severity, c.Kind))
	}
	return strings.Join(all, ", ")
}

func value(key, json string) attention.ChannelState {
	return attention.ChannelState{
		Key: key, Value: []byte(json), ObservedAt: began.Add(time.Hour), ChangedAt: began,
		Status: domain.ChannelSynchronized,
	}
}

// command returns a channel that reported a value some time after a command.
func command(
	key, json string, status domain.ChannelStatus, after time.Duration,
) attention.ChannelState {
	return attention.ChannelState{
		Key: key, Value: []byte(json), Desired: []byte("true"), DesiredAt: began,
		ObservedAt: began.Add(after), ChangedAt: began.Add(after), Status: status,
	}
}

func alarm(event string, active bool) attention.ChannelState {
	return value("alarm", fmt.Sprintf(`{"type":"x","event":%q,"active":%t,"user":2}`, event, active))
}

// Regression: conditions were told apart and ordered by hubs' clocks. A hub without the time
// reports smoke at the same second of 1970 after each boot: the second smoke counted as seen.
func TestOccurrencesByTheCloudsClock(t *testing.T) {
	t.Parallel()
	boot := time.Date(1970, 1, 1, 0, 0, 35, 0, time.UTC)
	smokeAt := func(logged time.Time) attention.Condition {
		c := value("smoke", "true")
		c.ObservedAt, c.ChangedAt = boot, boot
		c.Logged = domain.LoggedTimes{Observed: logged, Changed: logged}
		return attention.Of(attention.HubState{ID: hub, Status: domain.HubOnline, Known: began,
			Devices: []attention.DeviceState{{
				ID: 3, Available: true, Channels: []attention.ChannelState{c},
			}}})[0]
	}
	first, again := smokeAt(began), smokeAt(began.Add(time.Hour))
	seen := []domain.SeenCondition{{HubID: hub, Condition: first.ID, Since: first.Began}}
	if _, ok := first.SeenBy(seen); !ok {
		t.Error("the occurrence that was seen counts as new")
	}
	if _, ok := again.SeenBy(seen); ok {
		t.Error("a later occurrence counts as seen")
	}
	if attention.Compare(again, first) >= 0 {
		t.Error("the later occurrence is not the first")
	}
	if !first.Since.Equal(began) {
		t.Errorf("since %v, want the cloud's time %v", first.Since, began)
	}
	if !attention.Raises("smoke", []byte("true")) || attention.Raises("smoke", []byte("false")) ||
		attention.Raises("switch", []byte("true")) {
		t.Error("Raises: want true for smoke alone")
	}
}

// Regression: a jam was not shown if the hub's clock was set back between the last move of the lock
// and the jam, and a door that did not lock counted as moved by hand if the clock was set ahead.
func TestOrderByTheCloudsClock(t *testing.T) {
	t.Parallel()
	lock := command("lock", "true", domain.ChannelSynchronized, 2*time.Hour)
	lock.Logged = domain.LoggedTimes{Observed: began, Changed: began, Desired: began}
	jam := alarm("jammed", true)
	jam.Logged = domain.LoggedTimes{
		Observed: began.Add(time.Second), Changed: began.Add(time.Second),
	}
	if got := one(lock, jam); got != "alarm jammed" {
		t.Errorf("a jam by a clock that was set back: %q, want alarm jammed", got)
	}
	notDone := command("lock", "false", domain.ChannelDiverged, 365*24*time.Hour)
	notDone.Logged = domain.LoggedTimes{
		Desired: began, Observed: began.Add(time.Second), Changed: began.Add(time.Second),
	}
	if got := one(notDone); got != "alarm not_done" {
		t.Errorf("an outcome by a clock that was set ahead: %q, want alarm not_done", got)
	}
}

func TestWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	soon, later := 10*time.Second, time.Hour
	for name, c := range map[string]struct{ got, want string }{
		"smoke":             {one(value("smoke", "true")), "alarm smoke"},
		"no smoke":          {one(value("smoke", "false")), ""},
		"smoke unknown":     {one(attention.ChannelState{Key: "smoke"}), ""},
		"heat":              {one(value("heat", "true")), "alarm heat"},
		"leak":              {one(value("leak", "true")), "alarm leak"},
		"tamper":            {one(value("tamper", "true")), "alarm tamper"},
		"an open door":      {one(value("contact", "true")), ""},
		"motion":            {one(value("motion", "true")), ""},
		"an unlocked door":  {one(value("lock", "false")), ""},
		"battery at 20":     {one(value("battery", "20")), ""},
		"battery at 19.5":   {one(value("battery", "19.5")), "warning battery"},
		"battery unknown":   {one(value("battery", "null")), ""},
		"a jam":             {one(alarm("jammed", true)), "alarm jammed"},
		"a lock jammed":     {one(alarm("manual_lock_jammed", true)), "alarm jammed"},
		"a rejected code":   {one(alarm("keypad_code_rejected", true)), ""},
		"a malformed alarm": {one(value("alarm", `"x"`)), ""},
		"no alarm":          {one(value("alarm", "null")), ""},
		"failed": {
			one(command("level", "3", domain.ChannelFailed, soon)), "warning failed",
		},
		"a light that did not switch": {
			one(command("switch", "false", domain.ChannelDiverged, soon)), "warning not_done",
		},
		"a light switched by hand": {
			one(command("switch", "false", domain.ChannelDiverged, later)), "",
		},
		"a lock that did not lock": {
			one(command("lock", "false", domain.ChannelDiverged, soon)), "alarm not_done",
		},
		"a lock opened by hand": {
			one(command("lock", "false", domain.ChannelDiverged, later)), "warning by_hand",
		},
		"pending": {one(command("lock", "false", domain.ChannelPending, soon)), ""},
		"a jam and why": {
			one(command("lock", "false", domain.ChannelDiverged, soon), alarm("jammed", true)),
			"alarm jammed",
		},
		"a jam that was overcome": {
			one(command("lock", "true", domain.ChannelSynchronized, 2*later), alarm("jammed", true)),
			"",
		},
		// Many detectors report an alarm in a channel of its own and in words: it was listed twice.
		"smoke told twice":    {one(value("smoke", "true"), alarm("smoke", true)), "alarm smoke"},
		"smoke in words only": {one(value("smoke", "false"), alarm("smoke", true)), "alarm smoke"},
		"a battery told twice": {
			one(alarm("low_battery", true), value("battery", "3")), "warning battery",
		},
		"smoke, and another alarm": {
			one(value("smoke", "true"), alarm("glass_broken", true)), "alarm smoke, alarm alarm",
		},
		"out of reach": {
			kinds(attention.DeviceState{ID: 1, Available: false}), "warning unreachable",
		},
		"several, the most urgent first": {
			one(value("battery", "3"), value("leak", "true")), "alarm leak, warning battery",
		},
		"nothing": {kinds(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

// A hub that is offline needs attention, and so does what its devices reported before.
func TestHubs(t *testing.T) {
	t.Parallel()
	devices := []attention.DeviceState{{
		ID: 3, Available: true, Channels: []attention.ChannelState{value("smoke", "true")},
	}}
	for name, c := range map[string]struct {
		hub  attention.HubState
		want []attention.Kind
	}{
		"offline": {
			attention.HubState{Status: domain.HubOffline, Since: began, Devices: devices},
			[]attention.Kind{attention.Smoke, attention.Offline},
		},
		"silent": {
			attention.HubState{Status: domain.HubOnline, SilentSince: began, Devices: devices},
			[]attention.Kind{attention.Smoke, attention.NotHeard},
		},
		"never connected": {attention.HubState{Status: domain.HubUnknown, Since: began}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = hub
			var got []attention.Kind
			for _, condition := range attention.Of(c.hub) {
				got = append(got, condition.Kind)
				if condition.Hub != hub || !condition.Since.Equal(began) {
					t.Errorf("got %+v, want hub %s and since %s", condition, hub, began)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What has been seen steps back until the condition begins again. A battery loses charge every
// other day: having seen that it is low must not be undone by the next percent.
func TestSeen(t *testing.T) {
	t.Parallel()
	see := func(c attention.Condition) []domain.SeenCondition {
		return []domain.SeenCondition{{
			HubID: c.Hub, Condition: c.ID, Since: c.Since, MemberID: "ann",
		}}
	}
	of := func(c attention.ChannelState) attention.Condition {
		return attention.Of(attention.HubState{ID: hub, Devices: []attention.DeviceState{
			{ID: 3, Available: true, Channels: []attention.ChannelState{c}},
		}})[0]
	}
	again := func(c attention.ChannelState, after time.Duration, value string) attention.Condition {
		c.Value, c.ChangedAt = json.RawMessage(value), c.ChangedAt.Add(after)
		return of(c)
	}
	smoke, battery := value("smoke", "true"), value("battery", "19")
	for name, c := range map[string]struct {
		first, now attention.Condition
		want       bool
	}{
		"smoke":          {of(smoke), of(smoke), true},
		"smoke again":    {of(smoke), again(smoke, time.Hour, "true"), false},
		"battery":        {of(battery), again(battery, 48*time.Hour, "18"), true},
		"another winter": {of(battery), again(battery, 90*24*time.Hour, "17"), false},
		"another kind":   {of(battery), of(smoke), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, seen := c.now.SeenBy(see(c.first)); seen != c.want {
				t.Errorf("got seen %t, want %t", seen, c.want)
			}
		})
	}
}

// The begin of a condition without a known time is that of the hub's log, so that it can be seen.
func TestUnknownBegin(t *testing.T) {
	t.Parallel()
	got := attention.Of(attention.HubState{
		ID: hub, Known: began, Devices: []attention.DeviceState{{ID: 1}},
	})
	if len(got) != 1 || !got[0].Since.Equal(began) || got[0].ID != "unreachable/1//0" {
		t.Errorf("got %+v, want one since %s", got, began)
	}
}

// Every kind has a topic of its severity, so that quiet hours never hold back an alarm.
func TestTopics(t *testing.T) {
	t.Parallel()
	for kind := range attention.Texts {
		for severity, topics := range map[domain.Severity][]domain.MailTopic{
			domain.SeverityAlarm: domain.AlarmTopics, domain.SeverityWarning: domain.WarningTopics,
		} {
			own, reported := attention.Meaning(kind).Severity()
			if kind == attention.Offline || reported && own != severity {
				continue
			}
			if topic := kind.Topic(severity); severity == domain.SeverityWarning || reported {
				if !slices.Contains(topics, topic) {
					t.Errorf("%s, %s: got %s, want one of %s", kind, severity, topic, topics)
				}
			}
		}
	}
}
