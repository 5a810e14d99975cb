package population

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
)

// org is an organization while its events are being written.
type org struct {
	*writer
	number int
	state  domain.OrgState
	key    domain.Key
	actor  domain.Actor
	sites  []domain.SiteState
	hubs   []domain.HubState
	keys   []domain.KeyState
	// serial numbers the organization's sites, hubs and people.
	serial int
}

// record applies the events of a decision to a state and writes them.
func record[S any](
	w *writer, subject string, state *S, evolve func(S, domain.Event) (S, error),
	events []domain.Event, err error,
) error {
	for _, e := range events {
		if err == nil {
			*state, err = evolve(*state, e)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	return w.add(subject, events)
}

// begin creates an organization with its owner, a key and a site.
func (w *writer) begin(number int) (*org, error) {
	o := &org{writer: w, number: number, actor: domain.Actor{Kind: domain.ActorOperator}}
	id, owner, email := w.id(), w.id(), fmt.Sprintf(
		"owner@org-%d-%d.example.com", w.cfg.Seed, number,
	)
	if err := o.account(email); err != nil {
		return nil, err
	}
	events, err := domain.DecideCreateOrg(
		o.state, w.origin(o.actor), id, fmt.Sprintf("Organization %d", number), owner, email,
	)
	if err := record(
		w, streams.OrgSubject(id), &o.state, domain.EvolveOrg, events, err,
	); err != nil {
		return nil, err
	}
	if err := o.newKey(); err != nil {
		return nil, err
	}
	o.actor = domain.Actor{Kind: domain.ActorKey, ID: o.key.ID}
	return o, o.newSite()
}

// change applies one random change to the organization, mostly to its hubs.
func (o *org) change() error {
	switch dice := o.random.IntN(100); {
	case dice < 12 || len(o.hubs) == 0:
		return o.newHub()
	case dice < 62:
		return o.changeHub(&o.hubs[o.random.IntN(len(o.hubs))])
	case dice < 70:
		return o.newSite()
	case dice < 78:
		return o.renameSite(&o.sites[o.random.IntN(len(o.sites))])
	case dice < 90:
		return o.invite()
	case dice < 94:
		return o.changeMember()
	case dice < 98:
		return o.newKey()
	default:
		return o.revokeKey()
	}
}

func (o *org) account(email string) error {
	var state domain.AccountState
	events := domain.DecideCreateAccount(
		state, o.origin(domain.Actor{Kind: domain.ActorService}), o.id(), email,
	)
	return record(
		o.writer, streams.AccountSubject(domain.AccountKey(email)), &state, domain.EvolveAccount,
		events, nil,
	)
}

func (o *org) newSite() error {
	var state domain.SiteState
	id := o.id()
	o.serial++
	events, err := domain.DecideCreateSite(
		state, o.origin(o.actor), o.state.ID, id, fmt.Sprintf("Building %d", o.serial),
	)
	err = record(
		o.writer, streams.SiteSubject(o.state.ID, id), &state, domain.EvolveSite, events, err,
	)
	o.sites = append(o.sites, state)
	return err
}

func (o *org) renameSite(site *domain.SiteState) error {
	o.serial++
	events, err := domain.DecideRenameSite(
		*site, o.origin(o.actor), fmt.Sprintf("House %d", o.serial),
	)
	return record(
		o.writer, streams.SiteSubject(o.state.ID, site.ID), site, domain.EvolveSite, events, err,
	)
}

// newHub registers a hub, enrolls it and adds it to a site.
func (o *org) newHub() error {
	var state domain.HubState
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	text := make([]byte, 12)
	for i := range text {
		text[i] = letters[o.random.IntN(len(letters))]
	}
	id := domain.HubID(fmt.Sprintf("pop%d-%s-%s-%s", o.cfg.Seed, text[:4], text[4:8], text[8:]))
	subject := streams.HubSubject(id)
	events, err := domain.DecideRegisterHub(
		state, o.origin(domain.Actor{Kind: domain.ActorOperator}), id, make([]byte, 32),
	)
	if err := record(o.writer, subject, &state, domain.EvolveHub, events, err); err != nil {
		return err
	}
	fingerprint := fmt.Sprintf("%032x%032x", o.random.Uint64(), o.random.Uint64())
	issue := domain.IssueCertificate{
		Fingerprint: fingerprint,
		ExpiresAt:   o.at.AddDate(1, 0, 0),
		SecretHash:  state.SecretHash,
	}
	events, err = domain.DecideIssueCertificate(
		state, o.origin(domain.Actor{Kind: domain.ActorHub, ID: string(id)}), issue,
		domain.HubLimit{},
	)
	if err := record(o.writer, subject, &state, domain.EvolveHub, events, err); err != nil {
		return err
	}
	site := o.sites[o.random.IntN(len(o.sites))]
	add := domain.AddHub{OrgID: o.state.ID, HubID: id, SiteID: site.ID}
	presence := domain.Presence{HubID: id, Online: o.random.IntN(2) == 0}
	events, err = domain.DecideAddHub(
		state, o.origin(o.actor), add, &presence, domain.NewEpochID(o.random.Uint32()),
	)
	err = record(o.writer, subject, &state, domain.EvolveHub, events, err)
	o.hubs = append(o.hubs, state)
	return err
}

// changeHub names a hub or clears its name, moves it, names one of its devices, or forgets a
// device.
func (o *org) changeHub(hub *domain.HubState) error {
	var events []domain.Event
	var err error
	o.serial++
	text := fmt.Sprintf("Hub %d", o.serial)
	switch origin := o.origin(o.actor); o.random.IntN(10) {
	case 0, 1, 2:
		events, err = domain.DecideUpdateHub(
			*hub, origin,
			domain.UpdateHub{OrgID: o.state.ID, HubID: hub.ID, SetName: true, Name: &text},
		)
	case 3:
		events, err = domain.DecideUpdateHub(
			*hub, origin, domain.UpdateHub{OrgID: o.state.ID, HubID: hub.ID, SetName: true},
		)
	case 4, 5:
		to := o.sites[o.random.IntN(len(o.sites))].ID
		events, err = domain.DecideUpdateHub(
			*hub, origin, domain.UpdateHub{OrgID: o.state.ID, HubID: hub.ID, SiteID: &to},
		)
	case 6, 7, 8:
		events, err = domain.DecideLabelDevice(*hub, origin, domain.LabelDevice{
			OrgID: o.state.ID, HubID: hub.ID, DeviceID: int64(o.random.IntN(20) + 1),
			SetName: true, Name: &text, SetRoom: true, Room: &text,
		})
	default:
		events = domain.DecideForgetDevices(
			*hub,
			domain.Origin{
				At:    origin.At,
				Actor: domain.Actor{Kind: domain.ActorHub, ID: string(hub.ID)},
			},
			[]int64{int64(o.random.IntN(20) + 1)},
		)
	}
	return record(o.writer, streams.HubSubject(hub.ID), hub, domain.EvolveHub, events, err)
}

// invite invites a person. Most accept; some invitations are revoked or stay pending.
func (o *org) invite() error {
	o.serial++
	email := fmt.Sprintf("person-%d@org-%d-%d.example.com", o.serial, o.cfg.Seed, o.number)
	token := domain.InvitationToken{OrgID: o.state.ID, InvitationID: o.id()}
	token.Secret[0] = byte(o.serial)
	subject := streams.OrgSubject(o.state.ID)
	operator := domain.Actor{Kind: domain.ActorOperator}
	events, err := domain.DecideInvite(o.state, o.origin(operator), domain.Invite{
		MaxPending: 1 << 20, MaxPerHour: 1 << 20,
		InvitationID: token.InvitationID, Email: email, Access: domain.AccessMember,
		TokenHash: token.SecretHash(), TTL: domain.DefaultInvitationTTL,
	})
	if err := record(o.writer, subject, &o.state, domain.EvolveOrg, events, err); err != nil {
		return err
	}
	switch o.random.IntN(6) {
	case 0:
		events, err = domain.DecideRevokeInvitation(o.state, o.origin(operator), token.InvitationID)
		return record(o.writer, subject, &o.state, domain.EvolveOrg, events, err)
	case 1:
		return nil
	}
	member := o.id()
	events, _, err = domain.DecideAcceptInvitation(
		o.state, o.origin(domain.Actor{Kind: domain.ActorMember, ID: member}), token, member,
	)
	if err := record(o.writer, subject, &o.state, domain.EvolveOrg, events, err); err != nil {
		return err
	}
	return o.account(email)
}

// changeMember makes a random member who is no owner an admin, or removes the member.
func (o *org) changeMember() error {
	if len(o.state.Members) < 2 {
		return nil
	}
	member := o.state.Members[1+o.random.IntN(len(o.state.Members)-1)]
	origin := o.origin(domain.Actor{Kind: domain.ActorOperator})
	events, err := domain.DecideChangeRole(o.state, origin, member.ID, domain.RoleAdmin)
	if o.random.IntN(3) == 0 {
		events, err = domain.DecideRemoveMember(o.state, origin, member.ID)
	}
	return record(o.writer, streams.OrgSubject(o.state.ID), &o.state, domain.EvolveOrg, events, err)
}

// newKey creates a key with all scopes. The first key is the result's.
func (o *org) newKey() error {
	var entropy [domain.KeyEntropy]byte
	for i := range entropy {
		entropy[i] = byte(o.random.Uint32())
	}
	key := domain.NewKey(o.cfg.Environment, entropy)
	var state domain.KeyState
	events, err := domain.DecideCreateKey(
		state, o.origin(domain.Actor{Kind: domain.ActorOperator}), o.state.ID,
		fmt.Sprintf("key %d", len(o.keys)), domain.AllScopes(), domain.KeyLimits{}, key,
	)
	err = record(o.writer, streams.KeySubject(key.ID), &state, domain.EvolveKey, events, err)
	if o.keys = append(o.keys, state); len(o.keys) == 1 {
		o.key = key
	}
	return err
}

// revokeKey revokes a random key other than the first.
func (o *org) revokeKey() error {
	if len(o.keys) < 2 {
		return nil
	}
	key := &o.keys[1+o.random.IntN(len(o.keys)-1)]
	events, err := domain.DecideRevokeKey(
		*key, o.origin(domain.Actor{Kind: domain.ActorOperator}), o.state.ID,
	)
	return record(o.writer, streams.KeySubject(key.ID), key, domain.EvolveKey, events, err)
}

// presence stores a past connection for every eighth hub.
func (o *org) presence(ctx context.Context, conns *streams.Conns) error {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return err
	}
	bucket, err := js.KeyValue(ctx, streams.PresenceBucket)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := 0; i < len(o.hubs); i += 8 {
		reason := "client closed"
		value, err := json.Marshal(domain.Presence{
			HubID: o.hubs[i].ID, Since: o.at.Add(-time.Hour), PublicIP: "192.0.2.1",
			Reason: &reason, Firmware: json.RawMessage(`{"version":"1.0.0"}`),
			Connection: domain.Connection{Server: "gone", CID: 1, Start: o.at.Add(-2 * time.Hour)},
		})
		if err != nil {
			return err
		}
		group.Go(func() error {
			_, err := bucket.Put(ctx, string(o.hubs[i].ID), value)
			return err
		})
	}
	return group.Wait()
}

// result returns the current content of the organization.
func (o *org) result() Org {
	all := Org{ID: o.state.ID, Name: o.state.Name, Key: o.key.Reveal(), Members: o.state.Members}
	for _, s := range o.sites {
		all.Sites = append(all.Sites, Site{ID: s.ID, Name: s.Name})
	}
	for _, h := range o.hubs {
		all.Hubs = append(all.Hubs, Hub{ID: string(h.ID), SiteID: h.SiteID, Name: h.Name})
	}
	slices.SortFunc(all.Hubs, func(a, b Hub) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
