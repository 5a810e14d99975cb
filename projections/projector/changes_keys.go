package projector

import (
	_ "embed"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

//go:embed sql/revoke_keys.sql
var revokeKeys string

// keyChanges are the changes of schema.Keys.
type keyChanges struct {
	created rows[string, schema.Key]
	revoked rows[string, revokedKey]
}

type revokedKey struct {
	id, orgID string
	at        time.Time
}

func (c *keyChanges) create(r directory.Recorded, f domain.KeyCreated) error {
	if c.created.has(f.KeyID) || len(f.SecretHash) != 32 {
		return fmt.Errorf(
			"%w: key %s is created twice, or its hash has not 32 bytes", errBadEvent, f.KeyID,
		)
	}
	c.created.put(f.KeyID, schema.Key{
		ID: f.KeyID, OrgID: f.OrgID, Label: f.Label, Environment: f.Environment,
		Scopes: f.Scopes, SecretHash: f.SecretHash, Created: r.Event.At,
	})
	return nil
}

// revoke records the first revocation of a key; later ones change nothing.
func (c *keyChanges) revoke(r directory.Recorded, f domain.KeyRevoked) {
	if !c.revoked.has(f.KeyID) {
		c.revoked.put(f.KeyID, revokedKey{id: f.KeyID, orgID: f.OrgID, at: r.Event.At})
	}
}

func (c *keyChanges) size() int { return len(c.created.list) + len(c.revoked.list) }

func (c *keyChanges) addTo(all *statements) {
	all.add(schema.Keys.Insert(c.created.list))
	all.add(change(
		"revoke keys", revokeKeys, c.revoked.list,
		column(func(k revokedKey) string { return k.id }),
		column(func(k revokedKey) string { return k.orgID }),
		column(func(k revokedKey) time.Time { return k.at }),
	))
}
