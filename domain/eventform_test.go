package domain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

const eventID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"

// Events are stored forever, so every form in which an event was ever written has a golden file,
// which must decode to the fact below. To add a form, add its fact here and its file beside the
// others. Never change an existing file.
func TestEveryEventEverWrittenIsRead(t *testing.T) {
	t.Parallel()
	name := "Front hall"
	const credential = "01935f2e-0000-7000-8000-0000000000c1"
	const webhook = "01935f2e-0000-7000-8000-0000000000f1"
	later := time.Date(2026, 11, 28, 4, 5, 6, 123456000, time.UTC)
	target := domain.WebhookTarget{
		Name: "Dashboard", URL: "https://dashboard.example.org/events",
		Filter: domain.EventFilter{Sites: []string{site1}, Hubs: []domain.HubID{hub}, Types: []string{"channel.*"}},
	}
	want := map[string]domain.Fact{
		"org.created.v1": domain.OrgCreated{OrgID: orgA, Name: "Acme Estates"},
		"org.renamed.v1": domain.OrgRenamed{OrgID: orgA, Name: "Acme Houses"},
		"org.condition_seen.v1": domain.ConditionSeen{
			OrgID: orgA, Occurrence: domain.Occurrence{
				HubID: hub, Condition: "smoke/3/0",
				Since: time.Date(2026, 11, 28, 4, 5, 6, 123456000, time.UTC),
			},
		},
		"org.condition_unseen.v1": domain.ConditionUnseen{
			OrgID: orgA, Occurrences: []domain.Occurrence{{
				HubID: hub, Condition: "smoke/3/0",
				Since: time.Date(2026, 11, 28, 4, 5, 6, 123456000, time.UTC),
			}},
		},
		"org.member_named.v1": domain.MemberNamed{OrgID: orgA, MemberID: ann, Name: "Ann Smith"},
		"org.mail_preferences_set.v1": domain.MailPreferencesSet{
			OrgID: orgA, MemberID: ann,
			Topics: []domain.MailTopic{domain.MailSmoke, domain.MailBatteries}, Sites: []string{site1},
			Quiet: &domain.QuietHours{From: "22:00", To: "07:00", Zone: "Europe/Berlin"},
		},
		"org.book_set.v1": domain.BookSet{OrgID: orgA, BookSettings: domain.BookSettings{
			Kinds: []domain.BookKind{domain.BookDoors, domain.BookCodes}, Days: 90,
		}},
		"org.member_added.v1": domain.MemberAdded{
			OrgID: orgA, MemberID: "01935f2e-0000-7000-8000-0000000000aa",
			Email: "Owner@Example.org", Role: domain.RoleOwner,
		},
		"org.member_role_changed.v1": domain.MemberRoleChanged{
			OrgID:    orgA,
			MemberID: ann,
			Role:     domain.RoleAdmin,
		},
		"org.member_removed.v1": domain.MemberRemoved{OrgID: orgA, MemberID: ann},
		"org.invited.v1": domain.MemberInvited{
			OrgID: orgA, InvitationID: "01935f2e-0000-7000-8000-0000000000c1",
			Email: "Ann@Example.org", Role: domain.RoleMember, TokenHash: hash(3),
			ExpiresAt: time.Date(
				2026, 11, 28, 4, 5, 6, 123456000, time.UTC,
			), Replaces: "01935f2e-0000-7000-8000-0000000000c0",
		},
		"org.invitation_revoked.v1": domain.MemberInvitationRevoked{
			OrgID:        orgA,
			InvitationID: "01935f2e-0000-7000-8000-0000000000c1",
		},
		"org.invitation_restored.v1": domain.MemberInvitationRestored{
			OrgID: orgA, InvitationID: "01935f2e-0000-7000-8000-0000000000c1",
			Email: "Ann@Example.org", Role: domain.RoleMember, TokenHash: hash(3),
			CreatedAt: time.Date(2026, 11, 21, 4, 5, 6, 123456000, time.UTC),
			ExpiresAt: time.Date(2026, 11, 28, 4, 5, 6, 123456000, time.UTC),
		},
		"org.invitation_accepted.v1": domain.MemberInvitationAccepted{
			OrgID: orgA, InvitationID: "01935f2e-0000-7000-8000-0000000000c1", MemberID: ann,
		},
		"account.created.v1": domain.AccountCreated{
			AccountID: "01935f2e-0000-7000-8000-0000000000d1",
			Email:     "Ann@Example.org",
		},
		"account.identity_bound.v1": domain.AccountIdentityBound{
			AccountID: "01935f2e-0000-7000-8000-0000000000d1", Email: "Ann@Example.org",
			Identity: domain.Identity{Issuer: "https://login.example.org", Subject: "1f0c"},
		},
		"site.created.v1":   domain.SiteCreated{OrgID: orgA, SiteID: site1, Name: "Harbour Street 1"},
		"site.renamed.v1":   domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "Harbour Street 1a"},
		"hub.registered.v1": domain.HubRegistered{HubID: hub, SecretHash: hash(1)},
		"hub.certificate_issued.v1": domain.HubCertificateIssued{
			HubID: hub, Fingerprint: fingerprint(1),
			ExpiresAt: time.Date(2027, 11, 21, 4, 0, 0, 0, time.UTC),
		},
		"hub.certificate_revoked.v1": domain.HubCertificateRevoked{
			HubID:       hub,
			OrgID:       orgA,
			Fingerprint: fingerprint(1),
		},
		"hub.added.v1": domain.HubAdded{
			HubID: hub, OrgID: orgA, SiteID: site1, Name: &name,
			EpochID:   domain.NewEpochID(0x0a1b2c3d),
			Connected: true,
		},
		"hub.moved.v1":   domain.HubMoved{HubID: hub, OrgID: orgA, SiteID: site2},
		"hub.renamed.v1": domain.HubRenamed{HubID: hub, OrgID: orgA, Name: nil},
		"hub.log_begun.v1": domain.HubLogBegun{
			HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0x4e5f6071), OwnLog: "b2f0c1",
			Through: 16,
			After:   4711,
		},
		"hub.log_restored.v1": domain.HubLogRestored{
			HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0x5f607182), After: 4711,
			Former: domain.FormerEpochs{
				{ID: domain.NewEpochID(0x0a1b2c3d)},
				{ID: domain.NewEpochID(0x4e5f6071), Through: 4800},
			},
		},
		"hub.secret_rotated.v1": domain.HubSecretRotated{
			HubID:           hub,
			OrgID:           orgA,
			SecretHash:      hash(4),
			KeepCertificate: true,
		},
		"hub.blocked.v1":   domain.HubBlocked{HubID: hub, OrgID: orgA},
		"hub.unblocked.v1": domain.HubUnblocked{HubID: hub},
		"hub.released.v1":  domain.HubReleased{HubID: hub, OrgID: orgA, After: 4711},
		"hub.device_labeled.v1": domain.DeviceLabeled{
			HubID:    hub,
			OrgID:    orgA,
			DeviceID: 3,
			Name:     ptr("Front door"),
		},
		"hub.credential_set.v1": domain.CredentialSet{
			HubID: hub, OrgID: orgA, DeviceID: 3, Slot: 4, Version: credential,
			CredentialTerms: domain.CredentialTerms{
				Label: "Cleaner", ValidUntil: &later, TimeZone: "Europe/Berlin",
				Schedule: []domain.WeeklyTime{{Days: []string{"mon"}, From: "08:00", Until: "17:00"}},
			},
		},
		"hub.credential_revoked.v1": domain.CredentialRevocation{
			HubID: hub, OrgID: orgA, DeviceID: 3, Slot: 4, Version: credential, Removed: true,
		},
		"hub.credential_reported.v1": domain.CredentialReported{
			HubID: hub, OrgID: orgA, DeviceID: 3, Slot: 4, Version: credential, Reason: "lock_full",
			Message: "the lock has room for 30 codes",
		},
		"hub.device_forgotten.v1": domain.DeviceForgotten{HubID: hub, OrgID: orgA, DeviceID: 3},
		"key.created.v1": domain.KeyCreated{
			KeyID: "0123456789AB", OrgID: orgA, Label: "building dashboard",
			Environment: domain.EnvironmentLive,
			Scopes:      []domain.Scope{domain.ScopeHubsRead, domain.ScopeEventsRead}, SecretHash: hash(2),
		},
		"key.changed.v1": domain.KeyChanged{
			KeyID: "0123456789AB", OrgID: orgA,
			KeyLimits: domain.KeyLimits{Sites: []string{site1}, ExpiresAt: later},
		},
		"key.rotated.v1": domain.KeyRotated{
			KeyID: "0123456789AB", OrgID: orgA, SecretHash: hash(3),
			Former: []domain.KeySecret{{Hash: hash(2), Until: later}},
		},
		"key.expiry_mailed.v1": domain.KeyExpiryMailed{KeyID: "0123456789AB", OrgID: orgA, ExpiresAt: later},
		"key.revoked.v1":       domain.KeyRevoked{KeyID: "0123456789AB", OrgID: orgA},
		"webhook.created.v1": domain.WebhookCreated{
			OrgID: orgA, WebhookID: webhook, WebhookTarget: target, Secret: hash(5),
		},
		"webhook.changed.v1": domain.WebhookChanged{OrgID: orgA, WebhookID: webhook, WebhookTarget: target},
		"webhook.secret_rotated.v1": domain.WebhookSecretRotated{
			OrgID: orgA, WebhookID: webhook, Secret: hash(6), FormerUntil: later,
		},
		"webhook.enabled.v1":  domain.WebhookEnabled{OrgID: orgA, WebhookID: webhook},
		"webhook.disabled.v1": domain.WebhookDisabled{OrgID: orgA, WebhookID: webhook, Reason: domain.WebhookFailing},
		"webhook.replayed.v1": domain.WebhookReplayed{OrgID: orgA, WebhookID: webhook, Since: &later},
		"webhook.deleted.v1":  domain.WebhookDeleted{OrgID: orgA, WebhookID: webhook},
		"projection.skipped.v1": domain.ProjectionSkipped{
			Projection: "directory", Sequence: 4711, Type: "site.painted",
			Error: "unknown event: site.painted version 1", Why: "written by mistake",
		},
		"directory.event_lost.v1": domain.EventLost{Sequence: 4711},
	}
	for _, form := range domain.EventForms() {
		file := fmt.Sprintf("%s.v%d", form.Type, form.V)
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			golden, err := os.ReadFile(filepath.Join("testdata", "events", file+".json"))
			if err != nil {
				t.Fatalf("the form has no golden file: %v", err)
			}
			event, fact, err := domain.DecodeEvent(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(fact, want[file]) {
				t.Errorf("DecodeEvent: got %#v, want %#v", fact, want[file])
			}
			again, err := domain.EncodeEvent(event)
			if err != nil {
				t.Fatal(err)
			}
			if string(again)+"\n" != string(golden) {
				t.Errorf("EncodeEvent of the decoded event: got\n%s\nwant\n%s", again, golden)
			}
		})
	}
}

// A newer program may add fields to an event. An older program must still read the others.
func TestDecodeEventIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	raw := `{"id":"` + eventID + `","type":"site.renamed","v":1,"at":"2026-01-02T03:04:05Z",` +
		`"actor":{"kind":"robot","id":"x","mood":1},` +
		`"trace":"abc","data":{"org_id":"o","site_id":"s","name":"n","color":"red"}}`
	event, fact, err := domain.DecodeEvent([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if want := (domain.SiteRenamed{OrgID: "o", SiteID: "s", Name: "n"}); fact != want ||
		event.Actor.Kind != "robot" {
		t.Errorf("DecodeEvent: got %#v by %#v, want %#v by a robot", fact, event.Actor, want)
	}
}

func TestDecodeEventRejects(t *testing.T) {
	t.Parallel()
	head := `{"id":"` + eventID + `","at":"2026-01-02T03:04:05Z","actor":{"kind":"service"},`
	for name, raw := range map[string]string{
		"a newer version": head + `"type":"site.renamed","v":2,"data":{}}`,
		"a newer type":    head + `"type":"site.painted","v":1,"data":{}}`,
	} {
		event, _, err := domain.DecodeEvent([]byte(raw))
		if !errors.Is(err, domain.ErrUnknownEvent) || event.ID != eventID {
			t.Errorf("%s: got %v with event %q, want ErrUnknownEvent with %q", name, err, event.ID, eventID)
		}
	}
	for name, raw := range map[string]string{
		"nothing":         "",
		"no object":       "[]",
		"no type":         head + `"v":1,"data":{}}`,
		"no version":      head + `"type":"site.renamed","data":{}}`,
		"no id":           `{"type":"site.renamed","v":1,"at":"2026-01-02T03:04:05Z","data":{}}`,
		"no time":         `{"id":"x","type":"site.renamed","v":1,"data":{}}`,
		"no data":         head + `"type":"site.renamed","v":1}`,
		"data of no form": head + `"type":"site.renamed","v":1,"data":[]}`,
	} {
		if _, _, err := domain.DecodeEvent([]byte(raw)); err == nil ||
			errors.Is(err, domain.ErrUnknownEvent) {
			t.Errorf("%s: got %v, want an error other than ErrUnknownEvent", name, err)
		}
	}
}

func TestEncodeEventIsStrict(t *testing.T) {
	t.Parallel()
	good := func() domain.Event {
		e := domain.Record(origin, domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "n"})
		e.ID = eventID
		return e
	}
	if _, err := domain.EncodeEvent(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*domain.Event){
		"no id":        func(e *domain.Event) { e.ID = "" },
		"no ULID":      func(e *domain.Event) { e.ID = strings.ToLower(site1) },
		"no time":      func(e *domain.Event) { e.At = time.Time{} },
		"no actor":     func(e *domain.Event) { e.Actor = domain.Actor{} },
		"unknown type": func(e *domain.Event) { e.Type = "site.painted" },
		"unknown field": func(e *domain.Event) {
			e.Data = json.RawMessage(`{"org_id":"o","site_id":"s","name":"n","color":"red"}`)
		},
		"missing field": func(e *domain.Event) {
			e.Data = json.RawMessage(`{"org_id":"o","site_id":"s"}`)
		},
	} {
		e := good()
		spoil(&e)
		if raw, err := domain.EncodeEvent(e); err == nil {
			t.Errorf("%s: got %s, want an error", name, raw)
		}
	}
}

// A state folded from decided events must equal the state folded from the stored events.
func TestRecordTruncatesTimes(t *testing.T) {
	t.Parallel()
	o := origin
	o.At = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("", 3600))
	e := domain.Record(o, domain.SiteRenamed{})
	e.ID = eventID
	raw, err := domain.EncodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := domain.DecodeEvent(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored, e) {
		t.Errorf("decoded: got %#v, want %#v as decided", stored, e)
	}
}

func FuzzDecodeEvent(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		event, fact, err := domain.DecodeEvent(raw)
		if err != nil {
			return
		}
		if fact == nil || fact.EventType() != event.Type {
			t.Errorf("event of type %s: got the fact %#v of another type", event.Type, fact)
		}
	})
}
