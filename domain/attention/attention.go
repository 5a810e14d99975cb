package attention

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"hubcloud/domain"
)

// Kind is what is wrong.
type Kind string

// The kinds.
const (
	Smoke Kind = "smoke"
	CO    Kind = "co"
	Gas   Kind = "gas"
	Heat  Kind = "heat"
	Leak  Kind = "leak"
	// Emergency is that somebody needs help.
	Emergency Kind = "emergency"
	Tamper    Kind = "tamper"
	// Alarm is another alarm, such as an intrusion, and Warning another warning.
	Alarm   Kind = "alarm"
	Warning Kind = "warning"
	Jammed  Kind = "jammed"
	// NotLocked is that a bolt did not go all the way.
	NotLocked Kind = "not_locked"
	// Fault is that a device, or what it controls, has failed.
	Fault   Kind = "fault"
	Battery Kind = "battery"
	// Service is that a device needs maintenance.
	Service  Kind = "service"
	NotDone  Kind = "not_done"
	ByHand   Kind = "by_hand"
	Failed   Kind = "failed"
	Device   Kind = "unreachable"
	Offline  Kind = "hub_offline"
	NotHeard Kind = "hub_silent"
)

// rank orders the kinds of one severity: what endangers people is 0, other conditions are 1.
func (k Kind) rank() int {
	switch k {
	case Smoke, CO, Gas, Heat, Emergency:
		return 0
	}
	return 1
}

// OfHub reports whether conditions of the kind are about a hub, not about a device.
func (k Kind) OfHub() bool { return k == Offline || k == NotHeard }

// Urgent reports whether a condition is an alarm of a device: somebody must act at once, such as on
// smoke, a leak or a door that is not locked. The alarm of a hub that is offline is not urgent.
func (k Kind) Urgent(severity domain.Severity) bool {
	return severity == domain.SeverityAlarm && !k.OfHub()
}

// Topic returns the topic of mails about conditions of the kind with a severity.
func (k Kind) Topic(severity domain.Severity) domain.MailTopic {
	switch k {
	case Smoke, Heat:
		return domain.MailSmoke
	case CO, Gas:
		return domain.MailGas
	case Emergency:
		return domain.MailEmergency
	case Leak:
		return domain.MailWater
	case Jammed, NotLocked:
		return domain.MailLocks
	case Offline:
		return domain.MailHubs
	case Battery:
		return domain.MailBatteries
	case NotDone, ByHand, Failed:
		if severity == domain.SeverityAlarm { // a door
			return domain.MailLocks
		}
		return domain.MailCommands
	case Device, NotHeard, Fault, Service, Warning:
		return domain.MailFaults
	}
	return domain.MailSecurity
}

// Worse orders kinds of the same severity, the most urgent first.
func (k Kind) Worse(other Kind) int { return k.rank() - other.rank() }

// LowBattery is the charge in percent below which a battery needs attention.
const LowBattery = 20

// outcomeTime is how long after a command a different report is taken as the command's outcome.
// Later the device was operated by hand or by a rule.
const outcomeTime = time.Minute

// Condition is something that needs attention.
type Condition struct {
	// ID identifies the condition among its hub's conditions.
	ID       string
	Kind     Kind
	Severity domain.Severity
	Hub      domain.HubID
	// DeviceID, Name and Room are of the device, whose id may be 0; zero for a condition of the hub
	// itself: see Kind.OfHub.
	DeviceID   int64
	Name, Room string
	// Key and Endpoint are of the channel; empty for a condition of a device or a hub.
	Key      string
	Endpoint int64
	// Value is the reported value, and Wanted the value of the last command; nil for none.
	Value, Wanted json.RawMessage
	// Event is what an alarm channel reports.
	Event string
	// Since is when the condition began, as far as it is known: by the hub's clock for conditions
	// of devices, or by the cloud's where the hub's cannot be right.
	Since time.Time
	// Began identifies the occurrence, and orders it among others: when the cloud learned of it.
	// Hubs' clocks may show the same time twice.
	Began time.Time
}

// HubState is the state of a hub.
type HubState struct {
	ID     domain.HubID
	Status domain.HubStatus
	// Since is when Status changed last.
	Since time.Time
	// Reconnecting reports that the hub is offline because the service was restarted, and is
	// expected back: that is no condition yet.
	Reconnecting bool
	// SilentSince is since when the hub is connected but reports no events; zero if it reports.
	SilentSince time.Time
	// Known is since when the hub's log is known. Conditions whose begin is unknown began then.
	Known   time.Time
	Devices []DeviceState
}

// DeviceState is the last reported state of a device.
type DeviceState struct {
	ID         int64
	Name, Room string
	Available  bool
	// AvailableSince is when Available changed last, by the hub's clock, and AvailableLogged when
	// the cloud learned of it; zero if it is not known.
	AvailableSince, AvailableLogged time.Time
	Channels                        []ChannelState
}

// ChannelState is the last reported state of a channel. Values are JSON, nil for none.
type ChannelState struct {
	Key      string
	Endpoint int64
	Value    json.RawMessage
	// ObservedAt is when Value was reported last, and ChangedAt when it was reported first, by the
	// hub's clock.
	ObservedAt, ChangedAt time.Time
	Desired               json.RawMessage
	DesiredAt             time.Time
	Status                domain.ChannelStatus
	// Standing are the alarms that stand if the channel is an AlarmChannel, oldest first.
	Standing []domain.StandingAlarm
	// Logged are when the cloud learned of them.
	Logged domain.LoggedTimes
}

// triggers are the channels that are true while something is wrong.
var triggers = map[string]Kind{
	"smoke": Smoke, "co": CO, "heat": Heat, "leak": Leak, "tamper": Tamper,
}

// Of returns the conditions of a hub, the most urgent first, and then the newest first.
func Of(hub HubState) []Condition {
	var found []Condition
	switch {
	case hub.Reconnecting:
	case hub.Status == domain.HubOffline:
		found = append(found, Condition{
			ID: string(Offline), Kind: Offline, Severity: domain.SeverityAlarm, Since: hub.Since,
		})
	case !hub.SilentSince.IsZero():
		found = append(found, Condition{
			ID: string(NotHeard), Kind: NotHeard, Severity: domain.SeverityWarning,
			Since: hub.SilentSince,
		})
	}
	for _, device := range hub.Devices {
		for _, c := range device.conditions() {
			c.DeviceID, c.Name, c.Room = device.ID, device.Name, device.Room
			c.ID = fmt.Sprintf("%s/%d/%s/%d", c.Kind, device.ID, c.Key, c.Endpoint)
			if c.Since.IsZero() {
				c.Since = hub.Known
			}
			found = append(found, c)
		}
	}
	for i := range found {
		found[i].Hub = hub.ID
		if found[i].Began.IsZero() {
			found[i].Began = found[i].Since
		}
	}
	slices.SortStableFunc(found, Compare)
	return found
}

// Compare orders conditions: the most urgent first, then the newest first.
func Compare(a, b Condition) int {
	return cmp.Or(
		cmp.Compare(
			slices.Index(domain.Severities, a.Severity), slices.Index(domain.Severities, b.Severity),
		),
		a.Kind.rank()-b.Kind.rank(),
		b.Began.Compare(a.Began), cmp.Compare(a.Hub, b.Hub), cmp.Compare(a.ID, b.ID),
	)
}

func (d DeviceState) conditions() (found []Condition) {
	if !d.Available {
		found = append(found, Condition{
			Kind: Device, Severity: domain.SeverityWarning,
			Since: likely(d.AvailableSince, d.AvailableLogged), Began: d.AvailableLogged,
		})
	}
	for _, channel := range d.Channels {
		for _, c := range d.ofChannel(channel) {
			c.Key, c.Endpoint, c.Wanted = channel.Key, channel.Endpoint, channel.Desired
			found = append(found, c)
		}
	}
	all := slices.Clone(found)
	found = slices.DeleteFunc(found, func(c Condition) bool {
		// Many devices report the same in a channel of its own and in words.
		return c.Key == AlarmChannel && slices.ContainsFunc(all, func(other Condition) bool {
			return other.Kind == c.Kind && other.Key != AlarmChannel
		})
	})
	if slices.ContainsFunc(found, func(c Condition) bool {
		return c.Kind == Jammed || c.Kind == NotLocked
	}) {
		// The jam is why the command was not carried out.
		found = slices.DeleteFunc(found, func(c Condition) bool { return c.Kind == NotDone })
	}
	return found
}

// AlarmKeys returns the keys of the channels that report alarms.
func AlarmKeys() []string { return append(slices.Sorted(maps.Keys(triggers)), AlarmChannel) }

// Raises reports whether a channel with a key needs attention once it reports a value.
func Raises(key string, value json.RawMessage) bool {
	if key == AlarmChannel {
		return len(Stand(nil, domain.StandingAlarm{Value: value})) > 0
	}
	_, raises := ChannelState{Key: key, Value: value}.reported()
	return raises
}

// ofChannel returns the conditions of a channel.
func (d DeviceState) ofChannel(c ChannelState) []Condition {
	if c.Key == AlarmChannel {
		return d.alarms(c)
	}
	found, ok := c.reported()
	found.Since, found.Began = c.began(), c.Logged.Changed
	if !ok {
		found, ok = c.commanded()
	}
	if !ok {
		return nil
	}
	found.Value = c.Value
	return []Condition{found}
}

// reported returns the condition that the value of a channel stands for.
func (c ChannelState) reported() (Condition, bool) {
	kind, isTrigger := triggers[c.Key]
	switch {
	case isTrigger && string(c.Value) == "true":
		return Condition{Kind: kind, Severity: domain.SeverityAlarm}, true
	case c.Key == "battery":
		charge, err := strconv.ParseFloat(string(c.Value), 64)
		if err != nil || charge >= LowBattery {
			return Condition{}, false
		}
		return Condition{Kind: Battery, Severity: domain.SeverityWarning}, true
	}
	return Condition{}, false
}

// Ends reports whether the channel is a lock or barrier that did what it was asked, or was moved,
// after an alarm that it is jammed or not locked. Only what the hub answered at once is ordered by
// the hub's clock.
func (c ChannelState) Ends(jam domain.StandingAlarm) bool {
	order := cmp.Or(
		c.Logged.Changed.Compare(jam.Logged.Observed), c.ChangedAt.Compare(jam.ObservedAt),
	)
	if !isDoor(c.Key) || order <= 0 || c.Status == domain.ChannelDiverged {
		return false
	}
	a, _ := alarmOf(jam.Value)
	return Kind(a.entry.meaning) == Jammed || Kind(a.entry.meaning) == NotLocked
}

// commanded returns the condition that the last command of a channel has left.
func (c ChannelState) commanded() (Condition, bool) {
	warning := Condition{
		Kind: Failed, Severity: domain.SeverityWarning,
		Since: likely(c.DesiredAt, c.Logged.Desired), Began: c.Logged.Desired,
	}
	switch {
	case c.Status == domain.ChannelFailed:
		return warning, true
	case c.Status != domain.ChannelDiverged:
		return Condition{}, false
	case c.isOutcome():
		warning.Kind = NotDone
		if isDoor(c.Key) {
			warning.Severity = domain.SeverityAlarm
		}
		return warning, true
	case isDoor(c.Key):
		warning.Kind, warning.Since, warning.Began = ByHand, c.began(), c.Logged.Changed
		return warning, true
	}
	return Condition{}, false
}

// isOutcome reports whether the last report is the outcome of the last command: it followed within
// outcomeTime, by the hub's clock or, should that have been set meanwhile, by the cloud's.
func (c ChannelState) isOutcome() bool {
	return !c.DesiredAt.IsZero() && (c.ObservedAt.Sub(c.DesiredAt) <= outcomeTime ||
		!c.Logged.Desired.IsZero() && c.Logged.Observed.Sub(c.Logged.Desired) <= outcomeTime)
}

// isDoor reports whether a channel opens and closes the way into a building.
func isDoor(key string) bool { return key == "lock" || key == "barrier" }

// began returns when the channel's value was first reported.
func (c ChannelState) began() time.Time {
	if c.ChangedAt.IsZero() {
		return likely(c.ObservedAt, c.Logged.Observed)
	}
	return likely(c.ChangedAt, c.Logged.Changed)
}

// likely returns a time by the hub's clock, or when the cloud learned of it if the hub's clock
// cannot be right: it is ahead of the cloud's by more than two clocks differ, or days behind it.
func likely(at, logged time.Time) time.Time {
	late := logged.Sub(at)
	if !at.IsZero() && !logged.IsZero() && (late < -time.Minute || late > 7*24*time.Hour) {
		return logged
	}
	return at
}

// seenDrift is how long what was seen of a battery counts although its charge changes.
const seenDrift = 60 * 24 * time.Hour

// SeenBy returns who has seen the condition; false if nobody has. Every change of a battery's
// charge begins a new occurrence, so having seen a low battery counts for 60 days.
func (c Condition) SeenBy(seen []domain.SeenCondition) (domain.SeenCondition, bool) {
	i := slices.IndexFunc(seen, func(s domain.SeenCondition) bool {
		if s.HubID != c.Hub || s.Condition != c.ID {
			return false
		}
		age := c.Began.Sub(s.Since)
		return age == 0 || c.Kind == Battery && age > 0 && age < seenDrift
	})
	if i < 0 {
		return domain.SeenCondition{}, false
	}
	return seen[i], true
}
