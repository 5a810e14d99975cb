package projections

import (
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The statements that write many rows at once. Each takes one array a column.
var (
	//go:embed sql/apply/advance.sql
	advance string
	//go:embed sql/apply/insert_orgs.sql
	insertOrgs string
	//go:embed sql/apply/insert_members.sql
	insertMembers string
	//go:embed sql/apply/insert_people.sql
	insertPeople string
	//go:embed sql/apply/insert_activity.sql
	insertActivity string
	//go:embed sql/apply/delete_activity.sql
	deleteActivity string
	//go:embed sql/apply/change_members.sql
	changeMembers string
	//go:embed sql/apply/delete_members.sql
	deleteMembers string
	//go:embed sql/apply/insert_invitations.sql
	insertInvitations string
	//go:embed sql/apply/settle_invitations.sql
	settleInvitations string
	//go:embed sql/apply/insert_sites.sql
	insertSites string
	//go:embed sql/apply/rename_sites.sql
	renameSites string
	//go:embed sql/apply/insert_hubs.sql
	insertHubs string
	//go:embed sql/apply/delete_hubs.sql
	deleteHubs string
	//go:embed sql/apply/change_hubs.sql
	changeHubs string
	//go:embed sql/apply/clear_labels.sql
	clearLabels string
	//go:embed sql/apply/delete_labels.sql
	deleteLabels string
	//go:embed sql/apply/upsert_labels.sql
	upsertLabels string
	//go:embed sql/apply/insert_keys.sql
	insertKeys string
	//go:embed sql/apply/revoke_keys.sql
	revokeKeys string
	//go:embed sql/apply/upsert_presence.sql
	upsertPresence string
	//go:embed sql/apply/delete_presence.sql
	deletePresence string
)

// anyRows stands for a number of rows that nobody can know.
const anyRows = -1

// statement is one of them, with its arrays.
type statement struct {
	what string
	sql  string
	// rows is how many rows it must change.
	rows int
	args []any
}

// queue adds the statement to a batch, and what its answer must be.
func (s statement) queue(batch *pgx.Batch) {
	batch.Queue(s.sql, s.args...).Query(func(rows pgx.Rows) error {
		rows.Close()
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		if changed := rows.CommandTag().RowsAffected(); s.rows != anyRows &&
			changed != int64(s.rows) {
			return fmt.Errorf("%s: %w: %d of %d are there", s.what, ErrNoRow, changed, s.rows)
		}
		return nil
	})
}

// column takes one column out of rows.
func column[R, C any](rows []R, of func(R) C) []C {
	values := make([]C, len(rows))
	for i, row := range rows {
		values[i] = of(row)
	}
	return values
}
