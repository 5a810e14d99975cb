package readmodel

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/find_devices.sql
var findDevicesQuery string

// likeEscapes makes LIKE take the characters of a word as they are.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// FindDevices returns at most limit devices of an organization that have all words of a text in
// their name, room, model or number, or the name of their hub or site, ignoring case. Each has the
// value of the first of the channels main that it has. It fails as States does.
func (s *Store) FindDevices(
	ctx context.Context, org, text string, main []string, limit int,
) ([]domain.FoundDevice, error) {
	words := strings.Fields(strings.ToLower(schema.StorableText(text)))
	for i, word := range words {
		words[i] = "%" + likeEscapes.Replace(word) + "%"
	}
	ask := func(ctx context.Context) ([]domain.FoundDevice, error) {
		rows, err := s.pool.Query(ctx, findDevicesQuery, org, words, limit, main)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[domain.FoundDevice])
	}
	return readOf(ctx, s, schema.Devices, org, "search for devices", ask)
}
