package projector

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

var (
	//go:embed sql/change_keys.sql
	changeKeys string
	//go:embed sql/rotate_keys.sql
	rotateKeys string
	//go:embed sql/revoke_keys.sql
	revokeKeys string
)

// keyChanges are the changes of schema.Keys. Of the changes and rotations of a key the last counts.
type keyChanges struct {
	created rows[string, schema.Key]
	changed rows[string, domain.KeyChanged]
	rotated rows[string, rotatedKey]
	revoked rows[string, revokedKey]
}

type rotatedKey struct {
	id, orgID string
	hash      []byte
	former    string
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
		Scopes: f.Scopes, KeyLimits: f.KeyLimits, SecretHash: f.SecretHash, Created: r.Event.At,
	})
	return nil
}

func (c *keyChanges) change(f domain.KeyChanged) {
	c.changed.remove(f.KeyID)
	c.changed.put(f.KeyID, f)
}

func (c *keyChanges) rotate(f domain.KeyRotated) error {
	former, err := json.Marshal(f.Former)
	if err != nil || len(f.SecretHash) != 32 {
		return fmt.Errorf("%w: key %s is rotated to no hash of 32 bytes", errBadEvent, f.KeyID)
	}
	c.rotated.remove(f.KeyID)
	c.rotated.put(f.KeyID, rotatedKey{f.KeyID, f.OrgID, f.SecretHash, string(former)})
	return nil
}

// revoke records the first revocation of a key; later ones change nothing.
func (c *keyChanges) revoke(r directory.Recorded, f domain.KeyRevoked) {
	if !c.revoked.has(f.KeyID) {
		c.revoked.put(f.KeyID, revokedKey{id: f.KeyID, orgID: f.OrgID, at: r.Event.At})
	}
}

func (c *keyChanges) size() int {
	return len(c.created.list) + len(c.changed.list) + len(c.rotated.list) + len(c.revoked.list)
}

func (c *keyChanges) addTo(all *statements) {
	all.add(schema.Keys.Insert(c.created.list))
	all.add(change(
		"change keys", changeKeys, c.changed.list,
		column(func(k domain.KeyChanged) string { return k.KeyID }),
		column(func(k domain.KeyChanged) string { return k.OrgID }),
		column(func(k domain.KeyChanged) string { return strings.Join(k.Sites, " ") }),
		column(func(k domain.KeyChanged) *time.Time { return timeOrNil(k.ExpiresAt) }),
	))
	all.add(change(
		"rotate keys", rotateKeys, c.rotated.list,
		column(func(k rotatedKey) string { return k.id }),
		column(func(k rotatedKey) string { return k.orgID }),
		column(func(k rotatedKey) []byte { return k.hash }),
		column(func(k rotatedKey) string { return k.former }),
	))
	all.add(change(
		"revoke keys", revokeKeys, c.revoked.list,
		column(func(k revokedKey) string { return k.id }),
		column(func(k revokedKey) string { return k.orgID }),
		column(func(k revokedKey) time.Time { return k.at }),
	))
}

// timeOrNil returns nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
