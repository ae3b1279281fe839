package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// markers are the +name=value lines of a comment. A name may come several times.
type markers map[string][]string

func (m markers) has(name string) bool { return len(m[name]) > 0 }

func (m markers) first(name string) string {
	if values := m[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// typeMarkers reads the comment above a type and, as upstream's generators do, the one above that.
func typeMarkers(files *token.FileSet, file *ast.File, decl *ast.GenDecl, doc *ast.CommentGroup) markers {
	found := markers{}
	found.read(doc)
	start := files.Position(decl.Pos()).Line
	if doc != nil {
		start = files.Position(doc.Pos()).Line
	}
	for _, group := range file.Comments {
		if files.Position(group.End()).Line == start-2 {
			found.read(group)
		}
	}
	return found
}

func (m markers) read(group *ast.CommentGroup) {
	if group == nil {
		return
	}
	for _, comment := range group.List {
		text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
		if !strings.HasPrefix(text, "+") {
			continue
		}
		name, value, _ := strings.Cut(text[1:], "=")
		m[name] = append(m[name], strings.TrimSpace(value))
	}
}

func hasMarker(group *ast.CommentGroup, prefix string) bool {
	if group == nil {
		return false
	}
	for _, comment := range group.List {
		if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), prefix) {
			return true
		}
	}
	return false
}
