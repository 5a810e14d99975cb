package domain

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnknownEvent means that this program does not know an event's type or version: a newer program
// wrote it.
var ErrUnknownEvent = errors.New("unknown event")

// eventForm is a form in which events are stored: a type, one of the Type… constants, and a version
// of the type's data.
type eventForm struct {
	Type string
	V    int
}

// factDecoders has every form in which events were ever written. Entries may be added, but never
// removed or changed. The map is read-only.
var factDecoders = map[eventForm]func(json.RawMessage) (Fact, error){
	{TypeOrgCreated, 1}:            decodeFact[OrgCreated],
	{TypeOrgRenamed, 1}:            decodeFact[OrgRenamed],
	{TypeMemberAdded, 1}:           decodeFact[MemberAdded],
	{TypeMemberRoleChanged, 1}:     decodeFact[MemberRoleChanged],
	{TypeMemberRemoved, 1}:         decodeFact[MemberRemoved],
	{TypeMemberInvited, 1}:         decodeFact[MemberInvited],
	{TypeInvitationRevoked, 1}:     decodeFact[MemberInvitationRevoked],
	{TypeInvitationRestored, 1}:    decodeFact[MemberInvitationRestored],
	{TypeInvitationAccepted, 1}:    decodeFact[MemberInvitationAccepted],
	{TypeConditionSeen, 1}:         decodeFact[ConditionSeen],
	{TypeConditionUnseen, 1}:       decodeFact[ConditionUnseen],
	{TypeMemberNamed, 1}:           decodeFact[MemberNamed],
	{TypeMailPreferencesSet, 1}:    decodeFact[MailPreferencesSet],
	{TypeBookSet, 1}:               decodeFact[BookSet],
	{TypeAccountCreated, 1}:        decodeFact[AccountCreated],
	{TypeAccountIdentityBound, 1}:  decodeFact[AccountIdentityBound],
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
	{TypeCredentialSet, 1}:         decodeFact[CredentialSet],
	{TypeCredentialRevoked, 1}:     decodeFact[CredentialRevocation],
	{TypeCredentialReported, 1}:    decodeFact[CredentialReported],
	{TypeKeyCreated, 1}:            decodeFact[KeyCreated],
	{TypeKeyChanged, 1}:            decodeFact[KeyChanged],
	{TypeKeyRotated, 1}:            decodeFact[KeyRotated],
	{TypeKeyExpiryMailed, 1}:       decodeFact[KeyExpiryMailed],
	{TypeKeyRevoked, 1}:            decodeFact[KeyRevoked],
	{TypeWebhookCreated, 1}:        decodeFact[WebhookCreated],
	{TypeWebhookChanged, 1}:        decodeFact[WebhookChanged],
	{TypeWebhookRotated, 1}:        decodeFact[WebhookSecretRotated],
	{TypeWebhookEnabled, 1}:        decodeFact[WebhookEnabled],
	{TypeWebhookDisabled, 1}:       decodeFact[WebhookDisabled],
	{TypeWebhookReplayed, 1}:       decodeFact[WebhookReplayed],
	{TypeWebhookDeleted, 1}:        decodeFact[WebhookDeleted],
	{TypeProjectionSkipped, 1}:     decodeFact[ProjectionSkipped],
	{TypeEventLost, 1}:             decodeFact[EventLost],
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

// Fact decodes the event's data and ignores unknown fields. It returns ErrUnknownEvent for an
// unknown type or version.
func (e Event) Fact() (Fact, error) {
	decode, ok := factDecoders[eventForm{e.Type, e.V}]
	if !ok {
		return nil, fmt.Errorf("%w: %s version %d", ErrUnknownEvent, e.Type, e.V)
	}
	fact, err := decode(e.Data)
	if err != nil {
		return nil, fmt.Errorf("data of %s version %d: %w", e.Type, e.V, err)
	}
	return fact, nil
}
