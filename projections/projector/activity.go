package projector

import (
	_ "embed"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/delete_activity.sql
var deleteActivity string

// ExpireActivity returns the statement that deletes rows older than domain.ActivityRetention.
func ExpireActivity() schema.Statement {
	return schema.Statement{
		What: "delete old activity", SQL: deleteActivity, Rows: schema.AnyRows,
		Args: func() []any { return []any{int(domain.ActivityRetention.Hours())} },
	}
}
