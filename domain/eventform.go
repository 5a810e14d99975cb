package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrUnknownEvent means that this program does not know an event's type or version: a newer program
// wrote it.
var ErrUnknownEvent = errors.New("unknown event")

// eventForm is a form in which events are stored: a type and a version of the type's data.
type eventForm struct {
	Type string
	V    int
}

// facts has the type of every form in which events were ever written. Entries may be added, but never removed or
// changed. The map is read-only.
var facts = formsOf(1,
	OrgCreated{}, OrgRenamed{}, MemberAdded{}, MemberRoleChanged{}, MemberRemoved{}, MemberInvited{},
	MemberInvitationRevoked{}, MemberInvitationRestored{}, MemberInvitationAccepted{}, ConditionSeen{},
	ConditionUnseen{}, MemberNamed{}, MailPreferencesSet{}, BookSet{},
	AccountCreated{}, AccountIdentityBound{},
	SiteCreated{}, SiteRenamed{},
	HubRegistered{}, HubCertificateIssued{}, HubCertificateRevoked{}, HubAdded{}, HubMoved{}, HubRenamed{},
	HubLogBegun{}, HubLogRestored{}, HubSecretRotated{}, HubBlocked{}, HubUnblocked{}, HubReleased{},
	DeviceLabeled{}, DeviceForgotten{}, CredentialSet{}, CredentialRevocation{}, CredentialReported{},
	KeyCreated{}, KeyChanged{}, KeyRotated{}, KeyExpiryMailed{}, KeyRevoked{},
	WebhookCreated{}, WebhookChanged{}, WebhookSecretRotated{}, WebhookEnabled{}, WebhookDisabled{},
	WebhookReplayed{}, WebhookDeleted{},
	ProjectionSkipped{}, EventLost{},
)

// formsOf returns the types of facts by the forms of their events in a version.
func formsOf(version int, facts ...Fact) map[eventForm]reflect.Type {
	forms := make(map[eventForm]reflect.Type, len(facts))
	for _, fact := range facts {
		forms[eventForm{fact.EventType(), version}] = reflect.TypeOf(fact)
	}
	return forms
}

// currentVersion is the version in which all types are written.
const currentVersion = 1

// Fact decodes the event's data and ignores unknown fields. It returns ErrUnknownEvent for an
// unknown type or version.
func (e Event) Fact() (Fact, error) {
	kind, ok := facts[eventForm{e.Type, e.V}]
	if !ok {
		return nil, fmt.Errorf("%w: %s version %d", ErrUnknownEvent, e.Type, e.V)
	}
	fact := reflect.New(kind)
	if err := json.Unmarshal(e.Data, fact.Interface()); err != nil {
		return nil, fmt.Errorf("data of %s version %d: %w", e.Type, e.V, err)
	}
	return fact.Elem().Interface().(Fact), nil
}

// idOf returns a field of a fact of one aggregate, which begins the types of its events; false for other
// facts and for nil.
func idOf(fact Fact, aggregate, field string) (id string, ok bool) {
	if fact == nil || !strings.HasPrefix(fact.EventType(), aggregate) {
		return "", false
	}
	return reflect.ValueOf(fact).FieldByName(field).String(), true
}
