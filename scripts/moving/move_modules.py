"""refactor.py PLAN [--apply]. Moves and merges modules of vhlo_tools. Run with Python 3.12+ in the repository root."""
import ast, re, subprocess, sys, collections
from pathlib import Path
PK='vhlo_tools'
ROOT=Path.cwd()
flags=[]
def flag(*a): flags.append(' '.join(map(str,a)))

class Mod:
    def __init__(s,path):
        s.path=path; s.src=path.read_text(encoding='utf-8'); s.tree=ast.parse(s.src)
        rel=path.relative_to(ROOT)
        s.rel=str(rel)
        parts=list(rel.with_suffix('').parts)
        s.is_init=parts[-1]=='__init__'
        if s.is_init: parts.pop()
        s.name='.'.join(parts)
        s.lines=s.src.split('\n')
        s.lazy='lazy_exports(__name__)' in s.src
        s.defs=None
    def defined(s):
        if s.defs is None:
            d={}
            def bind(n,st):
                d.setdefault(n,st)
            def go(body):
                for st in body:
                    if isinstance(st,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)): bind(st.name,st)
                    elif isinstance(st,ast.Assign):
                        for t in st.targets:
                            for x in ast.walk(t):
                                if isinstance(x,ast.Name) and isinstance(x.ctx,ast.Store): bind(x.id,st)
                    elif isinstance(st,(ast.AnnAssign,ast.AugAssign)) and isinstance(st.target,ast.Name): bind(st.target.id,st)
                    elif isinstance(st,(ast.If,)):
                        go(st.body); go(st.orelse)
                    elif isinstance(st,ast.Try):
                        go(st.body); [go(h.body) for h in st.handlers]; go(st.orelse); go(st.finalbody)
                    elif isinstance(st,ast.With): go(st.body)
                    elif isinstance(st,(ast.For,ast.While)):
                        if isinstance(st,ast.For):
                            for x in ast.walk(st.target):
                                if isinstance(x,ast.Name): bind(x.id,st)
                        go(st.body)
            go(s.tree.body); s.defs=d
        return s.defs
    def imported(s):
        d={}
        for n in s.tree.body:
            blocks=[n]
            if isinstance(n,ast.If): blocks=n.body
            for b in blocks:
                if isinstance(b,ast.ImportFrom):
                    for a in b.names: d[a.asname or a.name]=(b.module,a.name)
        return d

def pyfiles():
    out=subprocess.run(['git','ls-files','*.py'],capture_output=True,text=True,check=True).stdout.split()
    return [ROOT/o for o in out if (ROOT/o).exists()]
mods={}; files=[]
for p in pyfiles():
    m=Mod(p); files.append(m)
    if m.rel.startswith(PK+'/'): mods[m.name]=m

# plan
drops=set(); doordocs={}; chosen={}
plan={}   # new rel -> (list of old rel, doc)
for line in Path(sys.argv[1]).read_text().split('\n'):
    line=line.split('#')[0].strip()
    if not line: continue
    if line.startswith('drop:'): drops|={'.'.join([PK,*Path(x).parent.parts]) for x in line[5:].split()}; continue
    if line.startswith('rename:'):
        f,*rs=line[7:].split()
        for r_ in rs:
            a_,b_=r_.split('='); chosen['.'.join([PK,*Path(f).with_suffix('').parts]),a_]=b_
        continue
    line,_,doc=line.partition('|')
    if '<-' not in line: doordocs['.'.join([PK,*Path(line.strip()).parent.parts])]=doc.strip(); continue
    new,_,olds=line.partition('<-')
    new=new.strip(); olds=olds.split()
    plan[new]=(olds,doc.strip())
def modname(rel):
    parts=list(Path(rel).with_suffix('').parts)
    if parts[-1]=='__init__': parts.pop()
    return '.'.join([PK,*parts])
newname={m:m for m in mods}
sources={}
for new,(olds,doc) in plan.items():
    for o in olds:
        on=modname(o)
        if on not in mods: sys.exit(f'no module {o}')
        if newname[on]!=on: sys.exit(f'{o} twice')
        newname[on]=modname(new)
    sources[modname(new)]=[modname(o) for o in olds]
for d in drops: newname[d]=None
taken=collections.Counter(x for x in newname.values() if x)
for n,k in taken.items():
    if k>1 and n not in sources: sys.exit(f'{n} would be overwritten: list it among the sources')
    if k>len(sources.get(n,[n])): sys.exit(f'{n} would be overwritten: list it among the sources')
def room(mod):
    parts=mod.split('.')
    if len(parts)==1: return ''
    # a leaf module is no room
    if len(parts)==2 and mod not in packages_new: return ''
    return parts[1]
packages_new={'.'.join(n.split('.')[:i]) for n in newname.values() if n for i in range(1,len(n.split('.')))}
packages_new|={m.name for m in mods.values() if m.is_init and newname[m.name]==m.name}
old_packages={m.name for m in mods.values() if m.is_init}

# old doors: name -> (module, orig)
exports={}
for m in mods.values():
    if not m.is_init: continue
    e={}
    for n in ast.walk(m.tree):
        if isinstance(n,ast.ImportFrom) and n.module and n.module.startswith(PK) and n in m.tree.body or (isinstance(n,ast.ImportFrom) and n.module and m.lazy and n.module.startswith(PK+'.') and n.module!='vhlo_tools.lazy'):
            for a in n.names: e[a.asname or a.name]=(n.module,a.name)
    e.pop('lazy_exports',None)
    exports[m.name]=e

def resolve(M,name,depth=0):
    if f'{M}.{name}' in mods: return ('module',f'{M}.{name}')
    if M not in mods: return None
    m=mods[M]
    if m.is_init and name in exports[M] and name not in m.defined() and depth<9:
        return resolve(*exports[M][name],depth+1)
    if name in m.defined(): return ('name',M,name)
    imp=m.imported()
    if name in imp and (imp[name][0] or '').startswith(PK) and depth<9:
        return resolve(*imp[name],depth+1)
    return ('name',M,name)

# collisions
renames=dict(chosen)  # (oldmod,name)->new name
def harmless(st):
    if isinstance(st,(ast.FunctionDef,)): return True
    v=getattr(st,'value',None)
    return v is not None and not any(isinstance(x,(ast.Dict,ast.List,ast.Set)) for x in ast.walk(v)) and all(ast.unparse(x.func) in('TypeVar','re.compile','frozenset','ParamSpec') for x in ast.walk(v) if isinstance(x,ast.Call))
import builtins
for new,olds in sources.items():
    if len(olds)<2: continue
    seen={}
    for o in olds:
        for n,st in mods[o].defined().items():
            if n=='__all__': continue
            if (o,n) in chosen: n=chosen[o,n]
            if (o,n) in renames: continue
            txt=ast.get_source_segment(mods[o].src,st)
            if n in seen:
                if seen[n][1]==txt and harmless(st):
                    renames[o,n]=None   # identical: drop the second
                    continue
                stem=o.rsplit('.',1)[1]
                nn=('_' if n.startswith('_') else '')+ (f'{stem}_{n.strip("_")}' if not n.isupper() and not n.lstrip('_').isupper() else f'{stem.upper()}_{n.strip("_")}')
                if n[:1].isupper() and not n.isupper() or (n.startswith('_') and n[1:2].isupper() and not n[1:].isupper()):
                    nn=('_' if n.startswith('_') else '')+''.join(w.title() for w in stem.split('_'))+n.strip('_')
                renames[o,n]=nn
                flag('COLLISION',new,n,'of',o.rsplit('.',1)[1],'with',seen[n][0].rsplit('.',1)[1],'->',nn)
            else: seen[n]=(o,txt)
    # imported names against defined names, and imports that differ
    imps={}
    for o in olds:
        for n,(im,orig) in mods[o].imported().items():
            r=resolve(im,orig) if (im or '').startswith(PK) else None
            if r and r[0]=='name' and newname[r[1]]==new: continue
            if n in seen and seen[n][0]!=o: flag('IMPORT-SHADOW',new,n,'imported in',o,'defined in',seen[n][0])
            key=(im,orig) if not r else r
            if n in imps and imps[n][0]!=key: flag('IMPORT-DIFFERS',new,n,imps[n],o,key)
            imps.setdefault(n,(key,o))

class Edits:
    def __init__(s,m):
        s.m=m; s.e=[]
        s.off=[0]
        b=m.src.encode()
        # offsets in bytes per line
        for l in m.src.split('\n'): s.off.append(s.off[-1]+len(l.encode())+1)
        s.b=b
    def pos(s,line,col): return s.off[line-1]+col
    def node(s,n,text): s.e.append((s.pos(n.lineno,n.col_offset),s.pos(n.end_lineno,n.end_col_offset),text))
    def apply(s):
        out=s.b
        last=None
        for a,b,t in sorted(s.e,key=lambda x:-x[0]):
            if last is not None and b>last: raise SystemExit(f'overlap in {s.m.rel} at {a}')
            out=out[:a]+t.encode()+out[b:]; last=a
        return out.decode()

def rename_in(m,edits,old,new):
    """Rename a module-level name within a module."""
    def localnames(fn):
        names=set(); globs=set()
        a=fn.args
        for x in [*a.posonlyargs,*a.args,*a.kwonlyargs,a.vararg,a.kwarg]:
            if x: names.add(x.arg)
        def go(n,top=False):
            for c in ast.iter_child_nodes(n):
                if isinstance(c,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)): names.add(c.name); continue
                if isinstance(c,ast.Lambda): continue
                if isinstance(c,ast.Global): globs.update(c.names)
                if isinstance(c,ast.Name) and isinstance(c.ctx,ast.Store): names.add(c.id)
                if isinstance(c,(ast.Import,ast.ImportFrom)): names.update(x.asname or x.name.split('.')[0] for x in c.names)
                if isinstance(c,ast.ExceptHandler) and c.name: names.add(c.name)
                if isinstance(c,(ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp)):
                    continue
                go(c)
        body=fn.body if isinstance(fn.body,list) else [fn.body]
        for st in body: go(ast.Module([st],[]))
        return names-globs
    def walk(n,shadow,cls=False):
        if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef)):
            for d in n.decorator_list: walk(d,shadow)
            for x in [*n.args.defaults,*[k for k in n.args.kw_defaults if k]]: walk(x,shadow)
            for x in [*n.args.posonlyargs,*n.args.args,*n.args.kwonlyargs,n.args.vararg,n.args.kwarg]:
                if x and x.annotation: walk(x.annotation,shadow)
            if n.returns: walk(n.returns,shadow)
            sh=shadow or old in localnames(n)
            for st in n.body: walk(st,sh)
            return
        if isinstance(n,ast.Lambda):
            sh=shadow or old in localnames(n)
            for x in n.args.defaults: walk(x,shadow)
            walk(n.body,sh); return
        if isinstance(n,(ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp)):
            bound={x.id for g in n.generators for x in ast.walk(g.target) if isinstance(x,ast.Name)}
            sh=shadow or old in bound
            for c in ast.iter_child_nodes(n): walk(c,sh)
            return
        if isinstance(n,ast.Name) and n.id==old and not shadow:
            edits.node(n,new); return
        if isinstance(n,ast.Global) and old in n.names:
            edits.node(n,'global '+', '.join(new if x==old else x for x in n.names))
        for c in ast.iter_child_nodes(n): walk(c,shadow)
    for st in m.tree.body:
        if isinstance(st,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)) and st.name==old:
            # the name after def/class
            l=st.lineno; line=m.src.split('\n')[l-1]
            mm=re.search(r'(?:def|class)\s+('+re.escape(old)+r')\b',line)
            a=edits.off[l-1]+len(line[:mm.start(1)].encode())
            edits.e.append((a,a+len(old.encode()),new))
        walk(st,False)

new_exports=collections.defaultdict(lambda: collections.defaultdict(set)) # door -> newmod -> names
wanted=collections.defaultdict(set)
def doorname(newmod):
    r=room(newmod)
    return f'{PK}.{r}' if r else None

# doors: where each exported name goes
for d,e in exports.items():
    if not mods[d].lazy: continue
    for n,(M,orig) in e.items():
        if d==PK: continue
        r=resolve(M,orig)
        if r is None: flag('UNRESOLVED export',d,n); continue
        if r[0]=='module': D,nn=r[1].rsplit('.',1)[0],None; flag('MODULE export',d,n); continue
        D=newname[r[1]]
        # exported through an eager inner door that stays: keep that
        if M!=r[1] and mods[M].is_init and newname[M]==M: D=M
        nn=renames.get((r[1],r[2])) or r[2]
        door=doorname(D)
        if not door or r[1].split('.')[1]!=d.split('.')[1]: new_exports[d][newname.get(M,M)].add(n); continue
        if door: new_exports[door][D].add(nn if nn==n or True else n)

def doorless(d):
    return mods[d].lazy and d!=PK and not any(n and n.startswith(d+'.') for n in newname.values())
def new_import(m,node,own_new,inside=True):
    """Return the replacement of an ImportFrom: dict module -> [(name, as)], and local renames; None if unchanged."""
    groups={}; changed=False; local=[]
    for a in node.names:
        r=resolve(node.module,a.name)
        shown=a.asname or a.name
        if r is None:
            groups.setdefault(node.module,[]).append((a.name,a.asname)); continue
        if r[0]=='module':
            nm=newname[r[1]]
            if nm is None: flag('MODULE-OF-DROPPED',m.rel,node.lineno,a.name); groups.setdefault(node.module,[]).append((a.name,a.asname)); continue
            if r[1] in old_packages and nm==r[1] and doorless(r[1]): flag('IMPORT-OF-GONE-DOOR',m.rel,node.lineno,a.name)
            if r[1] in old_packages and nm==r[1]:
                groups.setdefault(node.module,[]).append((a.name,a.asname)); continue
            if own_new is not None and nm==own_new:
                flag('SELF-MODULE',m.rel,node.lineno,a.name); groups.setdefault(node.module,[]).append((a.name,a.asname)); continue
            parent,leaf=nm.rsplit('.',1)
            groups.setdefault(parent,[]).append((leaf,shown if shown!=leaf else None))
            if nm!=r[1]: changed=True
            continue
        _,D,name=r
        nD=newname[D]; nn=renames.get((D,name)) or name
        if own_new is not None and nD==own_new:
            changed=True
            if shown!=nn: local.append((shown,nn))
            continue
        olddoor=mods[node.module].is_init if node.module in mods else False
        if nD==D and nn==name and newname.get(node.module,node.module)==node.module and not (node.module in mods and mods[node.module].is_init and doorless(node.module)) and (own_new is None or room(own_new)==(m.name.split('.')[1] if m.name.count('.')>1 else '')):
            groups.setdefault(node.module,[]).append((a.name,a.asname)); continue
        inner_door=olddoor and node.module.count('.')>1 and newname.get(node.module)==node.module
        if inner_door: target=node.module
        elif own_new is not None and room(own_new)==room(nD): target=nD
        elif olddoor or (own_new is None and inside is False and doorname(nD) and m.rel.startswith('nothing')):
            target=doorname(nD) or nD
            if target!=nD: new_exports[target][nD].add(nn)
        elif own_new is not None and doorname(nD) and not re.match(r'vhlo_tools\.(bindings\.(isolation|xla)|isolation|integrations|cli|frameworks)\b',nD):
            target=doorname(nD); new_exports[target][nD].add(nn)
        else: target=nD
        if target!=node.module or nn!=a.name or newname.get(node.module,node.module)!=node.module: changed=True
        groups.setdefault(target,[]).append((nn,shown if shown!=nn else None))
    return (groups if changed else None), local

def render(groups,indent):
    out=[]
    for mod,names in groups.items():
        out.append(f"from {mod.replace('vhlo_tools','vhlo\0tools',1)} import "+('('+', '.join(n+(f' as {s}' if s else '') for n,s in names)+')' if len(names)>3 else ', '.join(n+(f' as {s}' if s else '') for n,s in names)))
    return ('\n'+' '*indent).join(out)

edited={}
for m in files:
    inside=m.rel.startswith(PK+'/')
    own_new=newname[m.name] if inside and not (m.is_init and m.lazy) else None
    if inside and m.is_init and m.lazy and m.name!=PK: continue
    ed=Edits(m); drops=[]
    skip=set()
    if inside:
        for (o,n),nn in renames.items():
            if o==m.name and nn: rename_in(m,ed,n,nn)
    for node in ast.walk(m.tree):
        if isinstance(node,ast.ImportFrom) and not node.level and (node.module or '').split('.')[0]==PK:
            groups,local=new_import(m,node,own_new)
            for old,nn in local: 
                rename_in(m,ed,old,nn); flag('LOCAL-ALIAS',m.rel,old,'->',nn)
            if groups is None: continue
            if groups: ed.node(node,render(groups,node.col_offset))
            else: ed.node(node,'pass  # DROPPED' if node.col_offset else '')
    txt=ed.apply() if ed.e else m.src
    # statements that were dropped within blocks
    if 'pass  # DROPPED' in txt:
        out=[]
        for l in txt.split('\n'):
            if l.strip()=='pass  # DROPPED':
                continue
            out.append(l)
        out2=[]
        for k,l in enumerate(out):
            if l=='if TYPE_CHECKING:':
                nxt=next((x for x in out[k+1:] if x.strip()),'')
                if not nxt.startswith('    '): continue
            out2.append(l)
        txt='\n'.join(out2)
        try: ast.parse(txt.replace('vhlo\0tools','vhlo_tools'))
        except SyntaxError as e: flag('EMPTY-BLOCK',m.rel,e)
    edited[m.rel]=txt

# text: dotted names and paths
dotted={o:n for o,n in newname.items() if n and o!=n}
pairs=[]
for o,n in dotted.items():
    pairs.append((o,n))
rx=re.compile(r'(?<![\w.])('+'|'.join(re.escape(o) for o in sorted(dotted,key=len,reverse=True))+r')(?![\w])') if dotted else None
def relpath(mod): 
    m=mods[mod]; return m.rel
paths={}
for o,n in dotted.items():
    paths[mods[o].rel]=n.replace('.','/')+'.py' if n not in packages_new or n in sources else n.replace('.','/')+'/__init__.py'
px=re.compile('('+'|'.join(re.escape(o) for o in sorted(paths,key=len,reverse=True))+r')(?![\w])') if paths else None
def textual(t):
    if rx: t=rx.sub(lambda k:dotted[k[1]],t)
    if px: t=px.sub(lambda k:paths[k[1]],t)
    return t.replace('vhlo\0tools','vhlo_tools')

writes={}; deletes=set()
IMPORT=(ast.Import,ast.ImportFrom)
def split(rel,txt):
    """Return docstring, import lines, type-checking import lines, body text of a module."""
    t=ast.parse(txt.replace('vhlo\0tools','vhlo_tools')); lines=txt.split('\n')
    body=t.body; doc=None; i=0
    if body and isinstance(body[0],ast.Expr) and isinstance(body[0].value,ast.Constant) and isinstance(body[0].value.value,str):
        doc=ast.get_docstring(t); i=1
    drop=set(); imports=[]; tc=[]
    if i: drop.update(range(body[0].lineno,body[0].end_lineno+1))
    for st in body[i:]:
        if isinstance(st,IMPORT):
            seg='\n'.join(lines[st.lineno-1:st.end_lineno]); imports.append(seg); drop.update(range(st.lineno,st.end_lineno+1))
        elif isinstance(st,ast.If) and ast.unparse(st.test)=='TYPE_CHECKING' and not st.orelse and all(isinstance(x,IMPORT) for x in st.body):
            tc+=['\n'.join(l[4:] for l in lines[x.lineno-1:x.end_lineno]) for x in st.body]; drop.update(range(st.lineno,st.end_lineno+1))
    # __all__ lists go
    rest='\n'.join(l for k,l in enumerate(lines,1) if k not in drop)
    return doc,imports,tc,rest.strip('\n')
for new,olds in sources.items():
    # order by dependencies among the sources at import time
    deps={o:set() for o in olds}
    for o in olds:
        for n,(im,orig) in mods[o].imported().items():
            if (im or '').startswith(PK):
                r=resolve(im,orig)
                if r and r[0]=='name' and r[1] in deps and r[1]!=o: deps[o].add(r[1])
    order=[]; 
    def visit(o,stack=()):
        if o in order: return
        if o in stack: flag('CIRCLE',new,o); return
        for d in olds:
            if d in deps[o]: visit(d,(*stack,o))
        order.append(o)
    for o in olds: visit(o)
    head=None; imports=[]; tcs=[]; parts=[]
    many=len(order)>1
    doc_plan=plan_doc=None
    for nr,(os_,d) in plan.items():
        if modname(nr)==new: doc_plan=d; newrel=f'{PK}/{nr}'
    for o in order:
        m=mods[o]
        if m.is_init and m.lazy: sys.exit(f'{o} is a door')
        txt=edited[m.rel]
        # drop identical definitions
        for (oo,n),nn in renames.items():
            if oo==o and nn is None:
                t=ast.parse(txt.replace('vhlo\0tools','vhlo_tools')); ls=txt.split('\n')
                for st in t.body:
                    names=[]
                    if isinstance(st,(ast.FunctionDef,ast.ClassDef)): names=[st.name]
                    elif isinstance(st,ast.Assign): names=[x.id for x in st.targets if isinstance(x,ast.Name)]
                    elif isinstance(st,ast.AnnAssign) and isinstance(st.target,ast.Name): names=[st.target.id]
                    if names==[n]:
                        a=(st.decorator_list[0].lineno if getattr(st,'decorator_list',None) else st.lineno)-1
                        while a>0 and ls[a-1].startswith('#'): a-=1
                        txt='\n'.join(ls[:a]+ls[st.end_lineno:]); break
                else: flag('NOT-DROPPED',o,n)
        doc,im,tc,rest=split(m.rel,txt)
        imports+=im; tcs+=tc
        if many:
            title=(doc or '').split('\n')[0].rstrip('.')
            para=(doc or '').split('\n',1)[1].strip('\n') if '\n' in (doc or '') else ''
            sep=[f'# {title}'] if title else []
            if para:
                import textwrap
                for block in para.split('\n\n'):
                    ls=block.split('\n')
                    if any(len(l)>118 for l in ls) and not any(l.startswith((' ','- ','|')) for l in ls): ls=textwrap.wrap(' '.join(ls),118,break_long_words=False,break_on_hyphens=False)
                    sep+=['#']+[('# '+l).rstrip() for l in ls]
            parts.append('\n'.join(sep)+'\n\n\n'+rest)
        else: parts.append(rest); head=doc
        deletes.add(m.rel)
    if many: head=doc_plan or flag('NO-DOC',new) or (new.rsplit('.',1)[1]+'.')
    elif doc_plan: head=doc_plan
    fut=[i for i in imports if '__future__' in i][:1]
    oth=[]
    for i in imports:
        if '__future__' in i: continue
        if i not in oth: oth.append(i)
    have=set()
    for i in oth:
        for st in ast.parse(i.replace('vhlo\0tools','vhlo_tools')).body:
            if isinstance(st,ast.ImportFrom): have|={(st.module,a.name,a.asname) for a in st.names}
    kept=[]
    for i in dict.fromkeys(tcs):
        for st in ast.parse(i.replace('vhlo\0tools','vhlo_tools')).body:
            if isinstance(st,ast.ImportFrom):
                ns=[a for a in st.names if (st.module,a.name,a.asname) not in have]
                have|={(st.module,a.name,a.asname) for a in ns}
                if ns: kept.append(f"from {st.module.replace('vhlo_tools','vhlo'+chr(0)+'tools',1)} import ({', '.join(a.name+(f' as {a.asname}' if a.asname else '') for a in ns)})")
            else: kept.append(i)
    tcs=kept
    text=(f'"""{head}\n"""\n\n' if '\n' in head else f'"""{head}"""\n\n') if head else ''
    text+='\n'.join(fut)+('\n\n' if fut else '')+'\n'.join(oth)+'\n\n'
    if tcs:
        if not any('TYPE_CHECKING' in i for i in oth): text+='from typing import TYPE_CHECKING\n'
        text+='if TYPE_CHECKING:\n'+'\n'.join('\n'.join('    '+l for l in i.split('\n')) for i in tcs)+'\n\n'
    text+='\n\n\n'.join(parts)+'\n'
    writes[newrel]=textual(text)
for m in files:
    if m.rel in deletes: continue
    t=textual(edited.get(m.rel,m.src))
    if t!=m.src: writes[m.rel]=t
for d in drops: deletes.add(mods[d].rel); writes.pop(mods[d].rel,None)
deletes-=set(writes)
# other text files
others=subprocess.run(['git','ls-files'],capture_output=True,text=True,check=True).stdout.split('\n')
for o in others:
    if not o or o.endswith('.py') or o.startswith(('tests/surface','examples/','CHANGELOG')) : continue
    p=ROOT/o
    if not p.is_file() or p.suffix not in('.md','.toml','.yml','.yaml','.cfg','.js','.html','.txt','.sh','') : continue
    try: s=p.read_text(encoding='utf-8')
    except UnicodeDecodeError: continue
    t=textual(s)
    if t!=s: writes[o]=t
# doors
for d in {*[m.name for m in mods.values() if m.is_init and m.lazy and m.name!=PK],*new_exports}:
    e=new_exports.get(d,{})
    if d in mods and mods[d].lazy and doorless(d):
        deletes.add(mods[d].rel); writes.pop(mods[d].rel,None); flag('GONE-DOOR',d); continue
    if d in mods and mods[d].lazy:
        m=mods[d]
        if not any(True for x in e) :
            flag('EMPTY-DOOR',d); 
        txt=m.src
        t=ast.parse(txt); iff=next(x for x in t.body if isinstance(x,ast.If)); ls=txt.split('\n')
        new=['if TYPE_CHECKING:']
        for D in sorted(e):
            new.append(f"    from {D} import ({', '.join(sorted(e[D]))})")
        tail=ls[iff.orelse[0].lineno-2:]
        out='\n'.join(ls[:iff.lineno-1]+new+tail)
        if out!=txt: writes[m.rel]=textual(out)
    elif d not in mods or not mods[d].is_init:
        doc=doordocs.get(d) or flag('NEW-DOOR',d) or f'{d}.'
        body=''.join(f"    from {D} import ({', '.join(sorted(e[D]))})\n" for D in sorted(e))
        writes[d.replace('.','/')+'/__init__.py']=f'"""{doc}"""\n\nfrom typing import TYPE_CHECKING\n\nfrom vhlo_tools.lazy import lazy_exports\n\nif TYPE_CHECKING:\n{body}else:\n    __getattr__, __dir__ = lazy_exports(__name__)\n'
    else: 
        extra={n for D in e for n in e[D]}-set(exports[d])
        if extra: flag('EAGER-DOOR lacks',d,extra)
def graph():
    g=collections.defaultdict(set)
    for m in mods.values():
        if m.is_init: continue
        a=newname[m.name]
        for n in m.tree.body:
            if isinstance(n,ast.ImportFrom) and (n.module or '').startswith(PK):
                for al in n.names:
                    r=resolve(n.module,al.name)
                    if r:
                        b=newname.get(r[1],r[1])
                        if b!=a: g[a].add((b,m.name,al.name))
    return g
g=graph(); simple={a:{b for b,_,_ in s} for a,s in g.items()}
def reach(a):
    seen=set(); q=[a]
    while q:
        for b in simple.get(q.pop(),set())-seen: seen.add(b); q.append(b)
    return seen
R={a:reach(a) for a in simple}
for a in sorted(R):
    if a in R[a]:
        for b,src,n in sorted(g[a]):
            if a in R.get(b,()): flag('FILE-CIRCLE',a,'->',b,'by',src,n)
print('\n'.join(flags)); print(len(writes),'written',len(deletes),'deleted')
if '--apply' in sys.argv:
    for new,olds in sources.items():
        rel=mods[olds[0]].rel
    for r in deletes: (ROOT/r).unlink()
    for r,t in writes.items():
        p=ROOT/r; p.parent.mkdir(parents=True,exist_ok=True); p.write_text(t,encoding='utf-8')
    for d in sorted((ROOT/PK).rglob('*'),reverse=True):
        if d.is_dir() and d.name!='__pycache__' and not any(x for x in d.iterdir() if x.name!='__pycache__'):
            import shutil; shutil.rmtree(d)
