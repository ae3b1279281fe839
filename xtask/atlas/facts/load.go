package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// world is every package read so far, by import path.
type world struct {
	dirOf    func(module string) (string, error)
	packages map[string]*pkg
	dirs     map[string]string
}

// pkg is one package of API types.
type pkg struct {
	path, name, group string
	types             map[string]*typeDecl
	constants         map[string]string   // name to string value
	enums             map[string][]string // type name to its constants
	kinds             map[string]string   // kind to how it is registered
	found             map[string]string   // type name to its lines of output
}

// typeDecl is a declared type with the imports of its file.
type typeDecl struct {
	expr    ast.Expr
	markers markers
	imports map[string]string
}

func newWorld(dirOf func(string) (string, error)) *world {
	return &world{dirOf: dirOf, packages: map[string]*pkg{}, dirs: map[string]string{}}
}

// load reads a package of one of the pinned modules.
func (w *world) load(path string) (*pkg, error) {
	if found, ok := w.packages[path]; ok {
		return found, nil
	}
	parts := strings.SplitN(path, "/", 3)
	module := parts[0] + "/" + parts[1]
	if _, ok := w.dirs[module]; !ok {
		dir, err := w.dirOf(module)
		if err != nil {
			return nil, err
		}
		w.dirs[module] = dir
	}
	fresh := &pkg{
		path: path, name: shortName(path),
		types: map[string]*typeDecl{}, constants: map[string]string{}, enums: map[string][]string{},
		kinds: map[string]string{}, found: map[string]string{},
	}
	w.packages[path] = fresh
	return fresh, w.readDir(fresh, filepath.Join(w.dirs[module], parts[2]))
}

// shortName is the group directory and version, such as apps/v1.
func shortName(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[len(parts)-2:], "/")
}

func (w *world) readDir(p *pkg, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		isGenerated := strings.HasPrefix(name, "zz_generated") || strings.HasPrefix(name, "generated.")
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || isGenerated {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if err := w.readFile(p, files, file); err != nil {
			return err
		}
	}
	for _, values := range p.enums {
		sort.Strings(values)
	}
	return nil
}

func (w *world) readFile(p *pkg, files *token.FileSet, file *ast.File) error {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				doc := spec.Doc
				if doc == nil {
					doc = general.Doc
				}
				p.types[spec.Name.Name] = &typeDecl{spec.Type, typeMarkers(files, file, general, doc), imports}
			case *ast.ValueSpec:
				if err := w.readConstants(p, imports, general.Tok, spec); err != nil {
					return err
				}
			}
		}
	}
	ast.Inspect(file, p.readRegistration)
	return nil
}

// readConstants keeps string constants: the values of enums, the group's name and the targets of
// defaults.
func (w *world) readConstants(p *pkg, imports map[string]string, tok token.Token, spec *ast.ValueSpec) error {
	if tok != token.CONST {
		return nil
	}
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			return nil
		}
		typeName, value, err := w.constant(p, imports, spec.Type, spec.Values[i])
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		p.constants[name.Name] = *value
		if name.Name == "GroupName" {
			p.group = *value
		}
		if typeName != "" && !hasMarker(spec.Doc, "+enumExclude") {
			p.enums[typeName] = append(p.enums[typeName], *value)
		}
	}
	return nil
}

// constant is the type and the value of a string constant, which may be written as a conversion.
func (w *world) constant(from *pkg, imports map[string]string, kind, expr ast.Expr) (string, *string, error) {
	typeName := ""
	if name, ok := kind.(*ast.Ident); ok {
		typeName = name.Name
	}
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind != token.STRING {
			return "", nil, nil
		}
		value, err := strconv.Unquote(expr.Value)
		return typeName, &value, err
	case *ast.CallExpr:
		if len(expr.Args) == 1 {
			return w.constant(from, imports, expr.Fun, expr.Args[0])
		}
	case *ast.SelectorExpr:
		if typeName == "" {
			return "", nil, nil // Not the value of an enum.
		}
		decl := &typeDecl{imports: imports}
		next, name, err := w.lookup(from, decl, expr)
		if err != nil || next.name == from.name {
			return "", nil, err
		}
		if value, ok := next.constants[name]; ok {
			return typeName, &value, nil
		}
	}
	return "", nil, nil
}

// readRegistration finds the kinds a package registers: those of its own group and version, those
// of every group and version, and those without a version of their own.
func (p *pkg) readRegistration(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.CallExpr:
		selector, ok := node.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch selector.Sel.Name {
		case "AddKnownTypes":
			p.addKinds("kind", node.Args)
		case "AddUnversionedTypes":
			p.addKinds("unversioned", node.Args)
		}
	case *ast.ValueSpec:
		if len(node.Names) == 1 && node.Names[0].Name == "optionsTypes" && len(node.Values) == 1 {
			if list, ok := node.Values[0].(*ast.CompositeLit); ok {
				p.addKinds("every", list.Elts)
				p.kinds["WatchEvent"] = "every"
			}
		}
	}
	return true
}

func (p *pkg) addKinds(how string, arguments []ast.Expr) {
	for _, argument := range arguments {
		address, ok := argument.(*ast.UnaryExpr)
		if !ok {
			continue
		}
		literal, ok := address.X.(*ast.CompositeLit)
		if !ok {
			continue
		}
		if name, ok := literal.Type.(*ast.Ident); ok {
			p.kinds[name.Name] = how
		}
	}
}

// lookup finds the declaration that an expression names, and its package.
func (w *world) lookup(from *pkg, decl *typeDecl, expr ast.Expr) (*pkg, string, error) {
	switch expr := expr.(type) {
	case *ast.Ident:
		return from, expr.Name, nil
	case *ast.SelectorExpr:
		name, ok := expr.X.(*ast.Ident)
		if !ok {
			break
		}
		path, ok := decl.imports[name.Name]
		if !ok {
			break
		}
		found, err := w.load(path)
		return found, expr.Sel.Name, err
	}
	return nil, "", fmt.Errorf("%s: %T is not a type's name", from.path, expr)
}
