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

// ErrUnknownEvent means that this program does not know an event's type or version: a newer program
// wrote it.
var ErrUnknownEvent = errors.New("unknown event")

// EventType is a form in which events are stored.
type EventType struct {
	Type string
	V    int
}

// factDecoders has every form in which events were ever written. Entries may be added, but never
// removed or changed. The map is read-only.
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

// currentVersion is the version in which all types are written.
const currentVersion = 1

func decodeFact[F Fact](data json.RawMessage) (Fact, error) {
	var fact F
	if err := json.Unmarshal(data, &fact); err != nil {
		return nil, err
	}
	return fact, nil
}

// EventTypes returns every form in which events are stored, sorted by type and version.
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

// Record returns the event of a fact. Its ID is empty; the directory log sets it. Times are
// truncated to microseconds, in UTC, so that a state folded from these events equals one folded
// from the stored ones.
func Record(o Origin, fact Fact) Event {
	data, err := json.Marshal(fact)
	if err != nil {
		// Facts contain only text, numbers and times, so this is a bug in this package.
		panic(fmt.Sprintf("domain: encode %s: %v", fact.EventType(), err))
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

// Fact decodes the event's data and ignores unknown fields. An unknown type or version is
// ErrUnknownEvent.
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

// EncodeEvent returns an event in its stored form, one line of JSON. It is strict, since events are
// stored forever: it rejects an event without a ULID, a time or a known kind of actor, and data
// that differs from the encoding of its type.
func EncodeEvent(e Event) ([]byte, error) {
	if _, err := ulid.ParseStrict(e.ID); err != nil {
		return nil, fmt.Errorf("event %s: id %q: %w", e.Type, e.ID, err)
	}
	if e.At.IsZero() {
		return nil, fmt.Errorf("event %s: at: is missing", e.Type)
	}
	switch e.Actor.Kind {
	case ActorKey, ActorMember, ActorHub, ActorOperator, ActorService:
	default:
		return nil, fmt.Errorf("event %s: actor: unknown kind %q", e.Type, e.Actor.Kind)
	}
	fact, err := e.Fact()
	if err != nil {
		return nil, err
	}
	if again, err := json.Marshal(fact); err != nil || !bytes.Equal(again, e.Data) {
		return nil, fmt.Errorf("event %s: data: differs from the encoding of its type", e.Type)
	}
	return json.Marshal(e)
}

// DecodeEvent decodes a stored event and its data, and ignores unknown fields. The error is
// ErrUnknownEvent for a type or version that a newer program wrote. With an error, the event has
// the fields that could be read.
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
