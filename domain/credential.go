package domain

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"time"
)

const (
	// MaxCredentials is how many codes the locks of one hub may have through the API.
	MaxCredentials = 2000
	// MaxCredentialSlot is the highest slot that a code may be given.
	MaxCredentialSlot = 65535
	// maxWeeklyTimes is how many times a weekly schedule may have.
	maxWeeklyTimes = 21
)

// CredentialState is the state of a code.
type CredentialState string

// The states of a code. A pending one has not reached its lock yet. The lock has rejected a failed
// one, and keeps what it had before. A revoked one is to be removed from the lock, which may accept
// it until then; afterwards it is gone.
const (
	CredentialPending CredentialState = "pending"
	CredentialActive  CredentialState = "active"
	CredentialFailed  CredentialState = "failed"
	CredentialRevoked CredentialState = "revoked"
)

// CredentialUnsupported is the reason of a failure at a hub that does not support codes. Other
// reasons are types of errors of the hub protocol.
const CredentialUnsupported = "unsupported"

// CredentialSlot is the place of a code in a lock.
type CredentialSlot struct{ DeviceID, Slot int64 }

// CredentialTerms are who a code is for, and when the lock accepts it.
type CredentialTerms struct {
	// Label is for people: whose code it is.
	Label string `json:"label"`
	// ValidFrom and ValidUntil bound the time in which the code opens; nil is without a bound.
	ValidFrom  *time.Time `json:"valid_from,omitempty"`
	ValidUntil *time.Time `json:"valid_until,omitempty"`
	// TimeZone is the IANA name of the time zone of Schedule, empty if none is needed.
	TimeZone string `json:"time_zone,omitempty"`
	// Schedule are the times of the week in which the code opens; none is all.
	Schedule []WeeklyTime `json:"schedule,omitempty"`
}

// WeeklyTime is a time of day on some days of the week.
type WeeklyTime struct {
	// Days are mon, tue, wed, thu, fri, sat and sun.
	Days []string `json:"days"`
	// From and Until are times such as 08:00. Until is later than From, or 24:00.
	From  string `json:"from"`
	Until string `json:"until"`
}

// Credential is a code of a lock, without the code itself.
type Credential struct {
	CredentialSlot
	CredentialTerms
	// Version names what was asked last, and the code that waits for the lock.
	Version string
	State   CredentialState
	// Reason is why the lock has rejected what was asked, and Message says so to people.
	Reason, Message string
	// Held is whether the lock has ever had the code.
	Held                 bool
	CreatedAt, UpdatedAt time.Time
}

// SetCredential is the command to give a lock a code, or to change one.
type SetCredential struct {
	OrgID    string
	HubID    HubID
	DeviceID int64
	// Slot is the slot; 0 takes the first that is free in a new code.
	Slot    int64
	Version string
	// New is whether the code is new.
	New bool
	// Taken are slots with codes that the service does not know.
	Taken []int64
	// Change returns the terms, from those that the code has.
	Change func(CredentialTerms) CredentialTerms
}

// CredentialResult is what has become of one of several commands.
type CredentialResult struct {
	Credential Credential
	Err        error
}

// ErrCredentialNotFound returns the not_found error for a code.
func ErrCredentialNotFound() *Error { return Errorf(CodeNotFound, "no such credential") }

// DecideSetCredential sets a code of a lock, or changes one, which is pending then. It returns
// not_found for a hub that the organization does not have and for a code to change that does not
// exist or is revoked, and invalid_request for a slot that is taken, for too many codes and for an end
// that has passed.
func DecideSetCredential(s HubState, o Origin, c SetCredential) ([]Event, error) {
	if !s.ownedBy(c.OrgID) {
		return nil, ErrHubNotFound()
	}
	if s.HasCredential(c.Version) {
		return nil, nil
	}
	at := CredentialSlot{c.DeviceID, c.Slot}
	known, exists := s.Credentials[at]
	switch {
	case !c.New && (!exists || known.State == CredentialRevoked):
		return nil, ErrCredentialNotFound()
	case c.New && len(s.Credentials) >= MaxCredentials:
		return nil, Errorf(
			CodeInvalidRequest, "device_id: the locks of a hub can have at most %d codes", MaxCredentials,
		)
	case c.New && exists && known.State == CredentialRevoked:
		return nil, Errorf(
			CodeInvalidRequest, "slot: %d has a revoked code, which its lock has not removed yet", c.Slot,
		)
	case c.New && (exists || c.Slot != 0 && slices.Contains(c.Taken, c.Slot)):
		return nil, Errorf(CodeInvalidRequest, "slot: %d has a code already", c.Slot)
	}
	for at.Slot == 0 || c.New && (exists || slices.Contains(c.Taken, at.Slot)) {
		at.Slot++
		_, exists = s.Credentials[at]
	}
	terms := c.Change(known.CredentialTerms)
	if err := terms.check(); err != nil {
		return nil, err
	}
	until, before := terms.ValidUntil, known.ValidUntil
	if until != nil && !until.After(o.At) && (before == nil || !until.Equal(*before)) {
		return nil, Errorf(CodeInvalidRequest, "valid_until: must be in the future")
	}
	return []Event{Record(o, CredentialSet{
		HubID: s.ID, OrgID: s.OrgID, DeviceID: at.DeviceID, Slot: at.Slot, Version: c.Version,
		CredentialTerms: terms,
	})}, nil
}

// DecideRevokeCredential revokes a code; version names the removal from the lock. A code that the
// lock has rejected and never had is gone at once. It returns not_found for a code that does not
// exist, and no event for one that is revoked.
func DecideRevokeCredential(
	s HubState, o Origin, orgID string, at CredentialSlot, version string,
) ([]Event, error) {
	if !s.ownedBy(orgID) {
		return nil, ErrHubNotFound()
	}
	known, exists := s.Credentials[at]
	switch {
	case !exists:
		return nil, ErrCredentialNotFound()
	case known.State == CredentialRevoked:
		return nil, nil
	}
	return []Event{Record(o, CredentialRevocation{
		HubID: s.ID, OrgID: s.OrgID, DeviceID: at.DeviceID, Slot: at.Slot, Version: version,
		Removed: known.State == CredentialFailed && !known.Held,
	})}, nil
}

// DecideReportCredential records what has become of the version of a code at its lock: reason is
// empty for a success. It returns no event for another version, and if nothing changes.
func DecideReportCredential(s HubState, o Origin, version, reason, message string) []Event {
	known, ok := s.Credential(version)
	if !ok || known.State != CredentialPending && known.State != CredentialRevoked ||
		reason != "" && reason == known.Reason && message == known.Message {
		return nil
	}
	return []Event{Record(o, CredentialReported{
		HubID: s.ID, OrgID: s.OrgID, DeviceID: known.DeviceID, Slot: known.Slot, Version: version,
		Reason: reason, Message: message,
	})}
}

// Credential returns the code with a version.
func (s HubState) Credential(version string) (Credential, bool) {
	for _, c := range s.Credentials {
		if c.Version == version {
			return c, true
		}
	}
	return Credential{}, false
}

// HasCredential reports whether a code has the version.
func (s HubState) HasCredential(version string) bool {
	_, ok := s.Credential(version)
	return ok
}

// CredentialsOf returns the codes of a device, or of all for 0, by device and slot.
func (s HubState) CredentialsOf(deviceID int64) []Credential {
	all := slices.Collect(maps.Values(s.Credentials))
	if deviceID != 0 {
		all = slices.DeleteFunc(all, func(c Credential) bool { return c.DeviceID != deviceID })
	}
	slices.SortFunc(all, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.Slot, b.Slot))
	})
	return all
}

// withCredential returns a copy of the codes with one changed, or removed if change returns false.
func (s HubState) withCredential(
	device, slot int64, change func(*Credential) bool,
) map[CredentialSlot]Credential {
	all := maps.Clone(s.Credentials)
	if all == nil {
		all = map[CredentialSlot]Credential{}
	}
	at := CredentialSlot{device, slot}
	known := all[at]
	known.CredentialSlot = at
	if delete(all, at); change(&known) {
		all[at] = known
	}
	return all
}

// evolveCredentials folds an event about codes.
func (s HubState) evolveCredentials(at time.Time, fact Fact) map[CredentialSlot]Credential {
	switch f := fact.(type) {
	case CredentialSet:
		return s.withCredential(f.DeviceID, f.Slot, func(c *Credential) bool {
			c.CredentialTerms, c.Version, c.State = f.CredentialTerms, f.Version, CredentialPending
			c.Reason, c.Message, c.UpdatedAt = "", "", at
			if c.CreatedAt.IsZero() {
				c.CreatedAt = at
			}
			return true
		})
	case CredentialRevocation:
		return s.withCredential(f.DeviceID, f.Slot, func(c *Credential) bool {
			c.Version, c.State, c.Reason, c.Message = f.Version, CredentialRevoked, "", ""
			c.UpdatedAt = at
			return !f.Removed
		})
	case CredentialReported:
		return s.withCredential(f.DeviceID, f.Slot, func(c *Credential) bool {
			revoked := c.State == CredentialRevoked
			c.Reason, c.Message, c.UpdatedAt = f.Reason, f.Message, at
			switch {
			case revoked:
			case f.Reason == "":
				c.State, c.Held = CredentialActive, true
			default:
				c.State = CredentialFailed
			}
			return !revoked || f.Reason != ""
		})
	case DeviceForgotten:
		all := maps.Clone(s.Credentials)
		maps.DeleteFunc(all, func(at CredentialSlot, _ Credential) bool { return at.DeviceID == f.DeviceID })
		return all
	}
	return s.Credentials
}

var codePattern = regexp.MustCompile(`^[0-9]{4,10}$`)

// CheckDoorCode returns invalid_request for text that is no code.
func CheckDoorCode(field, code string) error {
	if !codePattern.MatchString(code) {
		return Errorf(CodeInvalidRequest, "%s: must be 4 to 10 digits", field)
	}
	return nil
}

// LoadTimeZone returns the time zone with an IANA name.
func LoadTimeZone(field, name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)                               // it rejects paths
	if err != nil || name == "" || name == "Local" || len(name) > 64 { // Local is the machine's
		return nil, Errorf(CodeInvalidRequest, "%s: must be a time zone such as Europe/Berlin", field)
	}
	return zone, nil
}

// weekdays are the days of a schedule.
var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// check returns invalid_request for terms that are not possible.
func (t CredentialTerms) check() error {
	if t.ValidFrom != nil && t.ValidUntil != nil && !t.ValidFrom.Before(*t.ValidUntil) {
		return Errorf(CodeInvalidRequest, "valid_until: must be after valid_from")
	}
	if len(t.Schedule) > maxWeeklyTimes {
		return Errorf(CodeInvalidRequest, "schedule: must have at most %d times", maxWeeklyTimes)
	}
	if len(t.Schedule) > 0 && t.TimeZone == "" {
		return Errorf(CodeInvalidRequest, "time_zone: is required with a schedule")
	}
	for i, w := range t.Schedule {
		_, fromErr := time.Parse(clockOfDay, w.From)
		_, untilErr := time.Parse(clockOfDay, w.Until)
		if fromErr != nil || untilErr != nil && w.Until != "24:00" || w.From >= w.Until ||
			len(w.From)+len(w.Until) != 2*len(clockOfDay) { // Parse takes 8:00 too
			return Errorf(
				CodeInvalidRequest,
				"schedule: item %d: from and until must be times such as 08:00 and 17:30, until the later", i,
			)
		}
		known := func(day string) bool { return slices.Contains(weekdays, day) }
		if len(w.Days) == 0 || len(w.Days) > len(weekdays) || !allOf(w.Days, known) {
			return Errorf(
				CodeInvalidRequest, "schedule: item %d: days must be of mon, tue, wed, thu, fri, sat, sun", i,
			)
		}
	}
	return nil
}

func allOf[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !is(item) })
}
