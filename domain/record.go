package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// ErrUnknownEvent says that an event's type, or that version of it, is not known to this program: a
// newer one wrote it.
var ErrUnknownEvent = errors.New("unknown event")

// EventType names one form in which events are stored.
type EventType struct {
	Type string
	V    int
}

// factDecoders holds every form that an event was ever written in. Entries are added, never removed
// or changed. It is never written to.
var factDecoders = map[EventType]func(json.RawMessage) (Fact, error){
	{TypeOrgCreated, 1}:            decodeFact[OrgCreated],
	{TypeMemberAdded, 1}:           decodeFact[MemberAdded],
	{TypeMemberRoleChanged, 1}:     decodeFact[MemberRoleChanged],
	{TypeMemberRemoved, 1}:         decodeFact[MemberRemoved],
	{TypeMemberInvited, 1}:         decodeFact[MemberInvited],
	{TypeInvitationRevoked, 1}:     decodeFact[MemberInvitationRevoked],
	{TypeInvitationAccepted, 1}:    decodeFact[MemberInvitationAccepted],
	{TypeAccountCreated, 1}:        decodeFact[AccountCreated],
	{TypeSiteCreated, 1}:           decodeFact[SiteCreated],
	{TypeSiteRenamed, 1}:           decodeFact[SiteRenamed],
	{TypeHubRegistered, 1}:         decodeFact[HubRegistered],
	{TypeHubCertificateIssued, 1}:  decodeFact[HubCertificateIssued],
	{TypeHubCertificateRevoked, 1}: decodeFact[HubCertificateRevoked],
	{TypeHubAdded, 1}:              decodeFact[HubAdded],
	{TypeHubMoved, 1}:              decodeFact[HubMoved],
	{TypeHubRenamed, 1}:            decodeFact[HubRenamed],
	{TypeHubLogBegun, 1}:           decodeFact[HubLogBegun],
	{TypeHubLogRestored, 1}:        decodeFact[HubLogRestored],
	{TypeHubSecretRotated, 1}:      decodeFact[HubSecretRotated],
	{TypeHubBlocked, 1}:            decodeFact[HubBlocked],
	{TypeHubUnblocked, 1}:          decodeFact[HubUnblocked],
	{TypeHubReleased, 1}:           decodeFact[HubReleased],
	{TypeDeviceLabeled, 1}:         decodeFact[DeviceLabeled],
	{TypeDeviceForgotten, 1}:       decodeFact[DeviceForgotten],
	{TypeKeyCreated, 1}:            decodeFact[KeyCreated],
	{TypeKeyRevoked, 1}:            decodeFact[KeyRevoked],
	{TypeProjectionSkipped, 1}:     decodeFact[ProjectionSkipped],
}

// currentVersion is the version in which every type is written.
const currentVersion = 1

func decodeFact[F Fact](data json.RawMessage) (Fact, error) {
	var fact F
	if err := json.Unmarshal(data, &fact); err != nil {
		return nil, err
	}
	return fact, nil
}

// EventTypes gives every form in which events are stored, by type and version.
func EventTypes() []EventType {
	types := make([]EventType, 0, len(factDecoders))
	for t := range factDecoders {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b EventType) int {
		return bytes.Compare(
			fmt.Appendf(nil, "%s.%09d", a.Type, a.V), fmt.Appendf(nil, "%s.%09d", b.Type, b.V),
		)
	})
	return types
}

// Record makes the event of a fact. Its ID is empty: the log that keeps the event gives it one.
// Times are kept to the microsecond, in UTC, so that a state folded from the events at hand is the
// same as one folded from what was stored.
func Record(o Origin, fact Fact) Event {
	data, err := json.Marshal(fact)
	if err != nil {
		// Facts are plain structures of texts, numbers and times; one that cannot be written is a
		// mistake in this package.
		panic(fmt.Sprintf("domain: %s cannot be written: %v", fact.EventType(), err))
	}
	return Event{
		Type:      fact.EventType(),
		V:         currentVersion,
		At:        wholeMicroseconds(o.At),
		Actor:     o.Actor,
		RequestID: o.RequestID,
		Data:      data,
	}
}

func wholeMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Fact reads the event's data. Fields that this program does not know are passed over; a type or
// version that it does not know is ErrUnknownEvent.
func (e Event) Fact() (Fact, error) {
	decode, ok := factDecoders[EventType{e.Type, e.V}]
	if !ok {
		return nil, fmt.Errorf("%w: %s version %d", ErrUnknownEvent, e.Type, e.V)
	}
	fact, err := decode(e.Data)
	if err != nil {
		return nil, fmt.Errorf("data of %s version %d: %w", e.Type, e.V, err)
	}
	return fact, nil
}

// EncodeEvent writes an event as it is stored, on one line. It is strict, since what is stored is
// stored for ever: an event without a ULID, a time or a known kind of actor is refused, and so is
// data that is not exactly what its type says.
func EncodeEvent(e Event) ([]byte, error) {
	if _, err := ulid.ParseStrict(e.ID); err != nil {
		return nil, fmt.Errorf("event %s: id %q: %w", e.Type, e.ID, err)
	}
	if e.At.IsZero() {
		return nil, fmt.Errorf("event %s: without a time", e.Type)
	}
	switch e.Actor.Kind {
	case ActorKey, ActorMember, ActorHub, ActorOperator, ActorService:
	default:
		return nil, fmt.Errorf("event %s: unknown kind of actor %q", e.Type, e.Actor.Kind)
	}
	fact, err := e.Fact()
	if err != nil {
		return nil, err
	}
	if again, err := json.Marshal(fact); err != nil || !bytes.Equal(again, e.Data) {
		return nil, fmt.Errorf("event %s: its data is not written as its type is", e.Type)
	}
	return json.Marshal(e)
}

// DecodeEvent reads an event as it was stored, and its data. It is tolerant: fields that it does
// not know are passed over. It fails on what is no event, and with ErrUnknownEvent on a type or
// version that a newer program wrote; what it could read of the event is given then too, so that it
// can be told which one it was.
func DecodeEvent(raw []byte) (Event, Fact, error) {
	if e, ok := readEnvelope(raw); ok && e.ID != "" && e.Type != "" && !e.At.IsZero() {
		if fact, err := e.Fact(); err == nil {
			return e, fact, nil
		}
	}
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, nil, fmt.Errorf("not an event: %w", err)
	}
	if e.ID == "" || e.Type == "" || e.V < 1 || e.At.IsZero() {
		return e, nil, errors.New("not an event: id, type, v or at is missing")
	}
	fact, err := e.Fact()
	return e, fact, err
}
