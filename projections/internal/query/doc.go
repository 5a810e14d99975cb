// Package query has the static queries on the read models, which sqlc generates from sql/.
package query

//go:generate env CGO_ENABLED=0 GOWORK=off go tool -modfile=../../../test/tools/go.mod sqlc generate -f sql/sqlc.yaml
