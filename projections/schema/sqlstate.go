package schema

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that callers tell apart.
const (
	CodeLockNotAvailable = "55P03"
	CodeUndefinedTable   = "42P01"
	CodeQueryCanceled    = "57014"
	CodeInvalidSchema    = "3F000"
	codeInvalidRole      = "28000"
	codeInvalidPassword  = "28P01"
	codeUnknownDatabase  = "3D000"
	// codeProtocol is what a pooler answers to startup parameters that it does not pass on.
	codeProtocol = "08P01"
)

// HasCode reports whether the server returned err with one of the SQLSTATE codes.
func HasCode(err error, codes ...string) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.Code == code {
			return true
		}
	}
	return false
}

// RejectsStatement reports whether the database rejects a statement for its content, so that it
// would reject it again. All other errors may pass, such as lost connections, shutdowns, failovers,
// full disks and deadlocks.
func RejectsStatement(err error) bool {
	switch class(err) {
	case "21", "22", "23", "42": // cardinality, data, integrity constraint, syntax and access rules
		return true
	}
	return false
}

// RejectsLogin reports whether the server rejects the role or has no such database, or is a pooler
// that rejects the connection's settings: the connection string is wrong. A server that is starting
// returns another code.
func RejectsLogin(err error) bool {
	return HasCode(err, codeInvalidRole, codeInvalidPassword, codeUnknownDatabase, codeProtocol)
}

// IsTransient reports whether err comes from the condition of the database: the same query can
// succeed later.
func IsTransient(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return true // no connection, or one that ended
	}
	switch class(err) {
	// connection, transaction state and rollback, resources, object state, operator intervention
	// such as a shutdown, and system errors
	case "08", "25", "40", "53", "55", "57", "58":
		return true
	}
	return false
}

// class returns the SQLSTATE class of err; empty if err does not come from the server.
func class(err error) string {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || len(answer.Code) != 5 {
		return ""
	}
	return answer.Code[:2]
}
