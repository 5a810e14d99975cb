package projector_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// However a history is cut into batches, the rows are the same.
func TestBatchSizeDoesNotMatter(t *testing.T) {
	t.Parallel()
	one, batched := newWriter(t), newWriter(t)
	rapid.Check(t, func(rt *rapid.T) {
		var history []directory.Recorded
		record := func(fact domain.Fact) {
			seq := uint64(len(history) + 1)
			event := domain.Record(
				domain.Origin{
					At:    time.UnixMicro(int64(1e15 + seq)),
					Actor: projectionstest.Operator,
				},
				fact,
			)
			event.ID = fmt.Sprint("event-", seq)
			history = append(history, directory.Recorded{Seq: seq, Event: event, Fact: fact})
		}
		var orgs, sites, hubs, released, keys, members, invitations []int
		for step := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			pick := func(of []int) int { return rapid.SampledFrom(of).Draw(rt, "which") }
			name := rapid.SampledFrom([]string{"a", "b", "ü"}).Draw(rt, "name")
			switch kind := rapid.IntRange(0, 19).Draw(rt, "kind"); {
			case kind == 0 && len(orgs) > 0 && rapid.Bool().Draw(rt, "rename"):
				record(domain.OrgRenamed{OrgID: fmt.Sprint("org-", pick(orgs)), Name: name})
			case kind == 0:
				orgs = append(orgs, step)
				record(domain.OrgCreated{OrgID: fmt.Sprint("org-", step), Name: name})
			case kind == 1:
				members = append(members, step)
				record(projectionstest.MemberAdded(org, step, domain.RoleMember))
			case kind == 2 || len(sites) == 0:
				sites = append(sites, step)
				record(domain.SiteCreated{OrgID: org, SiteID: siteID(step), Name: name})
			case kind == 3:
				record(domain.SiteRenamed{OrgID: org, SiteID: siteID(pick(sites)), Name: name})
			case kind == 4 || len(hubs) == 0:
				hubs = append(hubs, step)
				record(projectionstest.HubAdded(org, step, pick(sites)))
			case kind == 5:
				record(projectionstest.HubMoved(org, pick(hubs), pick(sites)))
			case kind == 6:
				record(domain.HubRenamed{
					HubID: hubID(pick(hubs)), OrgID: org,
					Name: rapid.SampledFrom([]*string{nil, &name}).Draw(rt, "new name"),
				})
			case kind == 7:
				if rapid.Bool().Draw(rt, "restored") {
					record(domain.HubLogRestored{
						HubID: hubID(pick(hubs)), OrgID: org,
						EpochID: domain.NewEpochID(uint32(step)),
						Former:  domain.FormerEpochs{{ID: domain.NewEpochID(0xa), Through: 5}},
					})
					break
				}
				record(domain.HubLogBegun{
					HubID: hubID(pick(hubs)), OrgID: org, EpochID: domain.NewEpochID(uint32(step)),
					After: uint64(step),
				})
			case kind == 8 || len(keys) == 0:
				keys = append(keys, step)
				record(domain.KeyCreated{
					KeyID: fmt.Sprint("key-", step), OrgID: org, Environment: domain.EnvironmentDev,
					Scopes: domain.AllScopes()[:1+step%3], SecretHash: make([]byte, 32),
				})
			case kind == 9 && len(members) > 0:
				role := rapid.SampledFrom([]domain.Role{
					domain.RoleOwner, domain.RoleAdmin, domain.RoleMember,
				}).
					Draw(rt, "role")
				record(projectionstest.RoleChanged(org, pick(members), role))
			case kind == 10 && len(members) > 0:
				var gone int
				gone, members = take(rt, members)
				record(projectionstest.MemberRemoved(org, gone))
			case kind == 11 && len(invitations) > 0 && rapid.Bool().Draw(rt, "replace"):
				var former int
				former, invitations = take(rt, invitations)
				record(
					projectionstest.MemberInvited(org, step, time.UnixMicro(2e15), invitationID(former)),
				)
				invitations = append(invitations, step)
			case kind == 11:
				record(projectionstest.MemberInvited(org, step, time.UnixMicro(2e15), ""))
				invitations = append(invitations, step)
			case kind == 12 && len(invitations) > 0:
				var former int
				if former, invitations = take(rt, invitations); rapid.Bool().Draw(rt, "revoke") {
					record(domain.MemberInvitationRevoked{
						OrgID: org, InvitationID: invitationID(former),
					})
					if rapid.Bool().Draw(rt, "restore") {
						record(domain.MemberInvitationRestored{
							OrgID: org, InvitationID: invitationID(former),
						})
						invitations = append(invitations, former)
					}
					break
				}
				record(projectionstest.MemberAdded(org, step, domain.RoleMember))
				members = append(members, step)
				record(domain.MemberInvitationAccepted{
					OrgID: org, InvitationID: invitationID(former), MemberID: memberID(step),
				})
			case kind == 13 || kind == 14:
				text := rapid.SampledFrom([]*string{nil, &name})
				record(domain.DeviceLabeled{
					HubID: hubID(pick(hubs)), OrgID: org,
					DeviceID: rapid.Int64Range(1, 3).Draw(rt, "device"),
					Name:     text.Draw(rt, "device's name"), Room: text.Draw(rt, "room"),
				})
			case kind == 16 && len(hubs) > 1:
				var gone int
				gone, hubs = take(rt, hubs)
				record(domain.HubReleased{HubID: hubID(gone), OrgID: org, After: uint64(step)})
				released = append(released, gone)
			case kind == 17 && len(released) > 0:
				var again int
				again, released = take(rt, released)
				fact := projectionstest.HubAdded(org, again, pick(sites))
				fact.After = uint64(step)
				record(fact)
				hubs = append(hubs, again)
			case kind == 15:
				record(domain.DeviceForgotten{
					HubID: hubID(pick(hubs)), OrgID: org,
					DeviceID: rapid.Int64Range(1, 3).Draw(rt, "device"),
				})
			case kind == 18:
				record(domain.KeyChanged{
					KeyID: fmt.Sprint("key-", pick(keys)), OrgID: org,
					KeyLimits: domain.KeyLimits{
						Sites: []string{"a", "b"}[:step%3], ExpiresAt: time.Unix(int64(step), 0).UTC(),
					},
				})
			case kind == 19:
				hash := make([]byte, 32)
				hash[0] = byte(step)
				record(domain.KeyRotated{
					KeyID: fmt.Sprint("key-", pick(keys)), OrgID: org, SecretHash: hash,
					Former: []domain.KeySecret{{Hash: hash}}[:step%2],
				})
			default:
				record(domain.KeyRevoked{KeyID: fmt.Sprint("key-", pick(keys)), OrgID: org})
			}
		}
		replay := func(w *projector.Writer[directory.Recorded], size func() int) {
			for _, table := range schema.TablesOf(schema.Directory) {
				if _, err := w.Conn.Exec(t.Context(), "DELETE FROM "+table.Name); err != nil {
					rt.Fatal(err)
				}
			}
			const reset = "UPDATE checkpoints SET sequence = 0, event_id = ''"
			if _, err := w.Conn.Exec(t.Context(), reset); err != nil {
				rt.Fatal(err)
			}
			w.Checkpoint = projector.Checkpoint{}
			for rest := history; len(rest) > 0; {
				n := min(size(), len(rest))
				streamstest.Must(rt, w.Apply(t.Context(), rest[:n]))
				rest = rest[n:]
			}
		}
		replay(one, func() int { return 1 })
		replay(batched, func() int { return rapid.IntRange(1, 40).Draw(rt, "batch") })
		got, want := projectionstest.Dump(t, batched.Conn), projectionstest.Dump(t, one.Conn)
		if got != want {
			rt.Fatalf("in batches:\n%s\none by one:\n%s", got, want)
		}
	})
}

// take draws one of the values and returns it and the others.
func take(t *rapid.T, from []int) (one int, rest []int) {
	i := rapid.IntRange(0, len(from)-1).Draw(t, "which")
	return from[i], slices.Delete(slices.Clone(from), i, i+1)
}

// newWriter returns a writer into read models in a database of its own.
func newWriter(t *testing.T) *projector.Writer[directory.Recorded] {
	t.Helper()
	config, err := schema.PoolConfig(projectionstest.NewDatabase(t, ""), schema.Name())
	streamstest.Must(t, err)
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off" // nothing outlasts the test
	conn, err := pgx.ConnectConfig(t.Context(), config.ConnConfig)
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	err = schema.Install(t.Context(), conn, schema.Name(), projectionstest.InstallationID)
	streamstest.Must(t, err)
	return &projector.Writer[directory.Recorded]{Source: &projector.DirectorySource{}, Conn: conn}
}
