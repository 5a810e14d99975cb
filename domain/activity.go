package domain

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ActivityRetention is how long the activity of an organization can be read. The directory keeps
// the facts forever.
const ActivityRetention = 365 * 24 * time.Hour

// Activity is a change in an organization: a record of its audit log, without secrets.
type Activity struct {
	OrgID string
	// Sequence is the event's sequence in the directory, which is the order of changes.
	Sequence uint64
	At       time.Time
	// Type is the EventType of the fact.
	Type string
	// Actor made the change. ActorName is its current name: a member's address, a key's label.
	Actor     Actor
	ActorName string
	// SubjectID is what was changed, SubjectName its current name. A device's id is its number.
	SubjectID   string
	SubjectName string
	// Hub is the hub that SubjectID is a device of; empty otherwise.
	Hub HubID
	// Detail is the new value: a role, a name, a room.
	Detail string
	// RequestID and Address are the request's that made the change; empty without one.
	RequestID, Address string
}

// ActivityFilter chooses activity. The zero value chooses all.
type ActivityFilter struct {
	// Types chooses types as EventFilter does.
	Types []string
	// Hubs chooses changes of these hubs and their devices; empty for all.
	Hubs []HubID
	// ActorID and SubjectID choose who made the change and what was changed; empty for all.
	ActorID, SubjectID string
	// Until chooses changes before a time; zero for all.
	Until time.Time
}

// Chooses reports whether the filter chooses a change.
func (f *ActivityFilter) Chooses(a *Activity) bool {
	types := EventFilter{Types: f.Types}
	return types.HasType(a.Type) && (f.ActorID == "" || f.ActorID == a.Actor.ID) &&
		(f.SubjectID == "" || f.SubjectID == a.SubjectID) &&
		(len(f.Hubs) == 0 || slices.Contains(f.Hubs, cmp.Or(a.Hub, HubID(a.SubjectID)))) &&
		(f.Until.IsZero() || a.At.Before(f.Until))
}

// ActivityOf returns the activity that an event of the directory records, and false for an event
// that concerns no organization, such as those of the inventory and of accounts. Names are empty.
func ActivityOf(sequence uint64, e Event, fact Fact) (a Activity, ok bool) {
	a = Activity{
		Sequence: sequence, At: e.At, Type: e.Type, Actor: e.Actor, RequestID: e.RequestID,
		Address: e.Address,
	}
	switch f := fact.(type) {
	case OrgCreated:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.OrgID, f.Name
	case OrgRenamed:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.OrgID, f.Name
	case ConditionSeen:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, string(f.HubID), f.Condition
	case ConditionUnseen:
		a.OrgID = f.OrgID
		for _, first := range f.Occurrences[:min(1, len(f.Occurrences))] {
			a.SubjectID, a.Detail = string(first.HubID), first.Condition
		}
	case MemberNamed:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.MemberID, f.Name
	case MailPreferencesSet:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.MemberID, cmp.Or(join(f.Topics), "none")
		if f.Sites != nil && len(f.Topics) > 0 {
			a.Detail += fmt.Sprintf(" (at %d of the sites)", len(f.Sites))
		}
	case BookSet:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.OrgID, f.String()
	case MemberAdded:
		a.OrgID, a.SubjectID = f.OrgID, f.MemberID
		a.Detail = string(AccessOf(f.Role, f.ViewOnly))
	case MemberRoleChanged:
		a.OrgID, a.SubjectID = f.OrgID, f.MemberID
		a.Detail = string(AccessOf(f.Role, f.ViewOnly))
	case MemberRemoved:
		a.OrgID, a.SubjectID = f.OrgID, f.MemberID
	case MemberInvited:
		a.OrgID, a.SubjectID = f.OrgID, f.InvitationID
		a.Detail = string(AccessOf(f.Role, f.ViewOnly))
	case MemberInvitationRevoked:
		a.OrgID, a.SubjectID = f.OrgID, f.InvitationID
	case MemberInvitationRestored:
		a.OrgID, a.SubjectID = f.OrgID, f.InvitationID
		a.Detail = string(AccessOf(f.Role, f.ViewOnly))
	case SiteCreated:
		a.OrgID, a.SubjectID = f.OrgID, f.SiteID
	case SiteRenamed:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.SiteID, f.Name
	case HubCertificateRevoked:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubAdded:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubMoved:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, string(f.HubID), f.SiteID
	case HubRenamed:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, string(f.HubID), textOf(f.Name)
	case HubLogBegun:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubSecretRotated:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubBlocked:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubUnblocked:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case HubReleased:
		a.OrgID, a.SubjectID = f.OrgID, string(f.HubID)
	case DeviceLabeled:
		a.OrgID, a.SubjectID, a.Hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), f.HubID
		a.Detail = strings.Trim(textOf(f.Name)+", "+textOf(f.Room), ", ")
	case DeviceForgotten:
		a.OrgID, a.SubjectID, a.Hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), f.HubID
	case CredentialSet:
		a.OrgID, a.SubjectID, a.Hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), f.HubID
		a.Detail = strconv.FormatInt(f.Slot, 10) + ", " + f.Label
	case CredentialRevocation:
		a.OrgID, a.SubjectID, a.Hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), f.HubID
		a.Detail = strconv.FormatInt(f.Slot, 10)
	case CredentialReported:
		a.OrgID, a.SubjectID, a.Hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), f.HubID
		a.Detail = strings.TrimSuffix(strconv.FormatInt(f.Slot, 10)+", "+f.Reason, ", ")
	case KeyCreated:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.KeyID, join(f.Scopes)
	case KeyChanged:
		a.OrgID, a.SubjectID = f.OrgID, f.KeyID
	case KeyRotated:
		a.OrgID, a.SubjectID = f.OrgID, f.KeyID
	case KeyExpiryMailed:
		a.OrgID, a.SubjectID = f.OrgID, f.KeyID
	case KeyRevoked:
		a.OrgID, a.SubjectID = f.OrgID, f.KeyID
	case WebhookCreated:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.WebhookID, hostOf(f.URL)
	case WebhookChanged:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.WebhookID, hostOf(f.URL)
	case WebhookSecretRotated:
		a.OrgID, a.SubjectID = f.OrgID, f.WebhookID
	case WebhookEnabled:
		a.OrgID, a.SubjectID = f.OrgID, f.WebhookID
	case WebhookDisabled:
		a.OrgID, a.SubjectID, a.Detail = f.OrgID, f.WebhookID, string(f.Reason)
	case WebhookReplayed:
		a.OrgID, a.SubjectID = f.OrgID, f.WebhookID
	case WebhookDeleted:
		a.OrgID, a.SubjectID = f.OrgID, f.WebhookID
	}
	return a, a.OrgID != "" // a hub of the inventory may have no organization
}

// hostOf returns an address without what may be a secret: its path, query and user.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// textOf returns the empty text for nil.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// join returns words with spaces between them.
func join[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}
